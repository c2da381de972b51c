-- age: how long the oldest job of a line has been due.
-- KEYS jobs
-- A line is sorted by priority, then arrival, which is nearly always the order of time as well. One
-- call looks at a bounded number of jobs: at whole lines as long as it can, else at the first of each
-- priority, from which one step leads to the next. So for long lines the answer may be too low,
-- never too high.

local BUDGET = 1000
local FIRST = 10
-- Where a record has the time at which the job is due.
local RUN_AT = 13
local looked_at = 0

local function earliest(members, skip, oldest)
  local ids = {}
  for n, member in ipairs(members) do ids[n] = sub(member, skip) end
  looked_at = looked_at + #ids
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
  if total <= BUDGET - looked_at then
    oldest = earliest(call('ZRANGE', index, from, to, 'BYLEX'), skip, oldest)
  else
    local first = looked_at < BUDGET and FIRST or 1
    while true do
      local members = call('ZRANGE', index, from, to, 'BYLEX', 'LIMIT', 0, first)
      if #members == 0 then break end
      oldest = earliest(members, skip, oldest)
      from = '(' .. line .. '\0' .. sub(members[1], #line + 2, #line + 5) .. '\255'
    end
  end
  return oldest and string.format('%.6f', math.max(0, now - oldest)) or ''
end
