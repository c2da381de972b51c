-- Nearly all jobs complete; the few that did not are spread over the whole table. So lists and counts of
-- them read what they filter by from the index, newest first in each state, not one page for each job.
-- While it is built others can read `history`, though not write to it. No other table is named here:
-- whoever settles has locked `job` before it waits for `history`.
CREATE INDEX history_unsuccessful_states ON history (state, id)
    INCLUDE (completed_at, created_at, queue, task, error_type) WHERE state <> 4;
DROP INDEX history_unsuccessful;
-- An index tells what is visible to all only where a vacuum has been since.
ALTER TABLE history SET (
    autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_insert_threshold = 5000
);
