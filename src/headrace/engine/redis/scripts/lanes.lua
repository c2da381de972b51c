#!lua flags=no-writes
-- lanes: some lanes with their width, holders and waiting jobs, from one name on.
-- KEYS places waiting lanes jobs
-- USES clock job
-- ARGV 1 offset  2 where to start (BYLEX)  3 where to end (BYLEX)  4 limit  5 how many holders
-- Answers for each lane: queue, zero, name  width  used  waiting
--   age of the oldest waiting job ('' none)  ids of holders, with zero bytes between them
-- Every lane that has anybody has a holder, so one step over `places` leads from lane to lane. The
-- caller asks for a bounded number and goes on after the last.

local function oldest_waiting(lane)
  local from, oldest = '[' .. lane .. '\0', nil
  while true do
    local member = call('ZRANGE', WAITING, from, '(' .. lane .. '\1', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return oldest and string.format('%.6f', math.max(0, now - oldest)) or '' end
    local run_at = decode(call('HGET', JOBS, sub(member, #lane + 19))).run_at
    if not oldest or run_at < oldest then oldest = run_at end
    from = '(' .. lane .. '\0' .. sub(member, #lane + 2, #lane + 5) .. '\255'
  end
end

local answer, from = {}, ARGV[2]
for _ = 1, tonumber(ARGV[4]) do
  local member = call('ZRANGE', PLACES, from, ARGV[3], 'BYLEX', 'LIMIT', 0, 1)[1]
  if not member then break end
  local lane = string.match(member, '^[^%z]+%z[^%z]+')
  local low, high = '[' .. lane .. '\0', '(' .. lane .. '\1'
  local holders = {}
  if ARGV[5] ~= '0' then
    holders = call('ZRANGE', PLACES, low, high, 'BYLEX', 'LIMIT', 0, ARGV[5])
    for n, holder in ipairs(holders) do holders[n] = sub(holder, #lane + 19) end
  end
  local width, used, waiting = struct.unpack('<HII', call('HGET', LANES, lane))
  for _, value in ipairs({
    lane, width, used, waiting, waiting > 0 and oldest_waiting(lane) or '',
    table.concat(holders, '\0'),
  }) do answer[#answer + 1] = value end
  from = '[' .. lane .. '\1'
end
return answer
