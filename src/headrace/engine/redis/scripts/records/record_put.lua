#!lua
-- record_put: write a small record if it has the version that the caller saw.
-- KEYS
-- USES clock record
-- ARGV 1 offset  2 kind, zero byte, key  3 body  4 version ('' whatever is there)
-- Answers 1 and the new version and time, or 0 and the version that is there.

local head, version = put_record(ARGV[2], ARGV[3], ARGV[4])
if not head then return { 0, version } end
return { 1, head }
