-- age: how long the oldest job of a line has been due.
-- KEYS jobs
-- A line is sorted by priority, then arrival, which is nearly always the order of time as well. As
-- long as there are few, all are looked at; of a long line the first few of each priority, and one
-- step leads to the next priority. So the answer may be too low for a long line, never too high.

local FEW = 5000
local FIRST = 10
-- Where a record has the time at which the job is due.
local RUN_AT = 13
-- What is left of them for all lines of one call.
local budget = FEW

local function earliest(members, skip, oldest)
  local ids = {}
  for n, member in ipairs(members) do ids[n] = sub(member, skip) end
  for _, record in ipairs(read(JOBS, ids)) do
    local run_at = struct.unpack('<d', record, RUN_AT)
    if not oldest or run_at < oldest then oldest = run_at end
  end
  return oldest
end

-- `line` is what its members begin with, `total` how many there are. Answers seconds, '' if none.
local function oldest_age(index, line, total)
  if total == 0 then return '' end
  local from, to, oldest = '[' .. line .. '\0', '(' .. line .. '\1', nil
  local skip = #line + 19
  if total <= budget then
    budget = budget - total
    oldest = earliest(call('ZRANGE', index, from, to, 'BYLEX'), skip, oldest)
  else
    while true do
      local members = call('ZRANGE', index, from, to, 'BYLEX', 'LIMIT', 0, FIRST)
      if #members == 0 then break end
      oldest = earliest(members, skip, oldest)
      from = '(' .. line .. '\0' .. sub(members[1], #line + 2, #line + 5) .. '\255'
    end
  end
  return oldest and string.format('%.6f', math.max(0, now - oldest)) or ''
end
