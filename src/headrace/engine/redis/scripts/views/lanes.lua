#!lua flags=no-writes
-- lanes: some lanes with their width, holders and waiting jobs, from one name on.
-- KEYS places waiting lanes
-- USES clock layout job age
-- ARGV 1 offset  2 where to start (BYLEX)  3 where to end (BYLEX)  4 limit  5 how many holders
--   6 1: with ages; 0: without, which costs a third
-- Answers for each lane: queue, zero, name  width  used  waiting
--   age of the oldest waiting job ('' none)  ids of holders, with zero bytes between them
-- Every lane that has anybody has a holder, so one step over `places` leads from lane to lane. The
-- caller asks for a bounded number and goes on after the last.

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
  local width, used, waits = struct.unpack('<HIB', call('HGET', LANES, lane))
  local waiting = waits > 0 and call('ZLEXCOUNT', WAITING, low, high) or 0
  local age = ARGV[6] == '1' and oldest_age(WAITING, lane, waiting) or ''
  for _, value in ipairs({ lane, width, used, waiting, age, table.concat(holders, '\0') }) do
    answer[#answer + 1] = value
  end
  from = '[' .. lane .. '\1'
end
return answer
