#!lua flags=allow-oom
-- exchange_rated: as exchange, where there are rates or holds.
-- KEYS leases idle signals rates queue_rates
-- USES clock layout job lanes children waits expiry rates cancel settle claim rated_claim
-- ARGV 1 offset, then 2 to 5 as exchange  6 how many jobs with a rate may be leased at most ('' any number)
--   then the queues and the outcomes as exchange
-- Answers the refused ids, in how many seconds one may start that has to wait ('' none), 1 if there are
-- rates or holds, then id, record and body of each leased job in turn.
-- Not in exchange: what this needs would cost every claim something.

local limit, inbox, queue_count = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local first = 7 + math.max(queue_count, 0)
local answer = { first <= #ARGV and settle_all(first, #ARGV) or {}, '', 0 }

local until_time = limit > 0 and call('ZSCORE', LEASES, ARGV[2])
if until_time then
  local named = queue_count >= 0 and { unpack(ARGV, 7, first - 1) } or nil
  free_slots = tonumber(ARGV[6]) or math.huge
  make_parked_ready()
  local name = lease_in_time(answer, ARGV[2], named, limit)
  if took_parked then put_in_order(answer, 3) end
  answer[2] = next_start(named)
  -- Who is handed a job does not ask the queue for a start: nobody is, while any has a rate or a hold.
  if #answer > 3 or inbox == '' or call('EXISTS', QUEUE_RATES) == 1 then
    call('HDEL', IDLE, ARGV[2])
  else
    be_idle(ARGV[2], name, named, inbox, until_time)
  end
elseif ARGV[2] ~= '' then
  call('HDEL', IDLE, ARGV[2])
end
answer[3] = call('EXISTS', RATES, QUEUE_RATES) > 0 and 1 or 0
write_lanes()
write_counts()
-- What this call made ready and did not take itself is for others.
if made_ready > 0 or left_for_others > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
