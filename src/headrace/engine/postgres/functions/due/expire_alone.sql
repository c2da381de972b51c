-- Whether nobody else ends jobs that have not started in time: until this transaction is over. Another is
-- waited for, since there may be more than one call's work, but not for long: other verbs wait behind this.
CREATE OR REPLACE FUNCTION expire_alone()
RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('job'::regclass::oid::integer, 2);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
