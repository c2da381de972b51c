#!lua
-- record_put: write a small record if it has the version that the caller saw.
-- KEYS records record_index
-- USES clock
-- ARGV 1 offset  2 kind, zero byte, key  3 body  4 version ('' whatever is there)
-- Answers 1 and the new version and time, or 0 and the version that is there.

local field = ARGV[2]
local old = call('HGET', RECORDS, field)
local version = old and struct.unpack('<I', old) or 0
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version then return { 0, version } end
local head = struct.pack('<Id', version + 1, now)
call('HSET', RECORDS, field, head .. ARGV[3])
call('ZADD', RECORD_INDEX, 0, field)
return { 1, head }
