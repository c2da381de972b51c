-- Jobs that came into these lanes by a caller's transaction (`insert_within`), which must not lock
-- lanes, because its caller decides how long it stays open. The next claim admits them.
ALTER TABLE bell RENAME TO lane_admission;

-- Programs that know version 11 use it by its earlier name, and go on doing so.
CREATE VIEW bell AS SELECT id, width, queue, lane FROM lane_admission;
