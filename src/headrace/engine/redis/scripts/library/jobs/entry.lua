-- entry: what is kept with a job by kind and name.
-- KEYS meta entries entry_order
-- `entries` has job, zero, kind, zero, name; `entry_order` job, zero, number, kind, zero, name: which of
-- them was written first.

local function keep_entry(id, token, kind, name, body)
  local field = kind .. '\0' .. name
  local value = struct.pack('<Id', token, now) .. body
  if call('HSET', ENTRIES, id .. '\0' .. field, value) == 1 then
    local number = string.format('%013.0f', call('HINCRBY', META, 'seq', 1))
    call('ZADD', ENTRY_ORDER, 0, id .. '\0' .. number .. field)
  end
end
