-- record: small records with a version that guards changes.
-- KEYS records record_index
-- `records` has kind, zero, key, and in front of a body its version and when it was written.

-- `guard` is the version that the caller saw ('' whatever is there). Answers version and time as they
-- are kept, or nothing and the version that is there.
local function put_record(field, body, guard)
  local old = call('HGET', RECORDS, field)
  local version = old and struct.unpack('<I', old) or 0
  if guard ~= '' and tonumber(guard) ~= version then return nil, version end
  local head = struct.pack('<Id', version + 1, now)
  call('HSET', RECORDS, field, head .. body)
  call('ZADD', RECORD_INDEX, 0, field)
  return head
end
