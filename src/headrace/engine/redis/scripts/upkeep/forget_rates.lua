#!lua flags=allow-oom
-- forget_rates: forget rates that jobs have set and none needs any more, and holds that are over.
-- KEYS jobs rate_index rated_jobs signals
-- USES clock layout job lanes rates
-- ARGV 1 offset  2 after which name ('' at the beginning)
-- Answers after which name to go on, '' at the end. One call is one bounded step.
-- A rate may go when what has started is paid for, and no unfinished job of the lane has one; a hold when
-- none is parked by it, which `write_key` looks at.
-- Entries of jobs that have finished are only there if a program from before layout 6 ended them. If the clock
-- went back, who is parked does not wait for it to catch up.

local AT_ONCE = 500

-- Whether an unfinished job of a lane has a rate.
local function is_needed(key)
  local low, high = '[' .. key.name .. '\0', '(' .. key.name .. '\1'
  while true do
    local member = call('ZRANGE', RATED_JOBS, low, high, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return false end
    local record = call('HGET', JOBS, sub(member, #key.name + 2))
    if record and decode(record).state <= RUNNING then return true end
    call('ZREM', RATED_JOBS, member)
  end
end

local names = call('ZRANGE', RATE_INDEX, ARGV[2] == '' and '-' or '(' .. ARGV[2], '+', 'BYLEX', 'LIMIT', 0,
  AT_ONCE)
for _, name in ipairs(names) do
  local queue, lane = string.match(name, '^([^%z]*)%z(.*)$')
  local key = open_key(queue, lane)
  if key and key.set_back then
    look_again(key)
    write_key(key)
  elseif key and not key.by_operator then
    local rate = key.by_jobs
    local free_at = math.max(key.tat, key.held_until + (rate and (rate.burst - 1) * rate.interval or 0))
    if free_at <= now and not is_needed(key) then
      key.by_jobs, key.held_until = nil, 0
      write_key(key)
    end
  end
end
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return #names == AT_ONCE and names[AT_ONCE] or ''
