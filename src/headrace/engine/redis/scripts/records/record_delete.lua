#!lua flags=allow-oom
-- record_delete: delete a small record if it has the version that the caller saw.
-- KEYS records record_index
-- USES clock
-- ARGV 1 offset  2 kind, zero byte, key  3 version ('' whatever is there)
-- Answers 1 and whether it existed, or 0 and the version that is there.

local field = ARGV[2]
local old = call('HGET', RECORDS, field)
local version = old and struct.unpack('<I', old) or 0
if ARGV[3] ~= '' and tonumber(ARGV[3]) ~= version then return { 0, version } end
call('ZREM', RECORD_INDEX, field)
return { 1, call('HDEL', RECORDS, field) }
