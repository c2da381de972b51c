-- Note that a migration has been applied, in the transaction that applied it.
INSERT INTO migration (version) VALUES ($1)
