-- There are reserved jobs of another queue or task: every worker has to find out if they are for it.
UPDATE worker SET offered = NULL WHERE offered IS NOT NULL;
