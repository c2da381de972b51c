#!lua flags=allow-oom
-- exchange: record outcomes, then lease ready jobs to one worker.
-- KEYS leases idle signals rates queue_rates
-- USES clock layout job lanes children waits expiry cancel settle claim
-- ARGV 1 offset  2 worker id ('' none)  3 limit  4 where it hears of a job that it is handed ('' not)
--   5 number of queues (-1: all)  then the queues,
--   then six for each outcome: id  token  outcome  delay  data  log entry ('' none)
--   outcome: a final state as a number, or "retry", "snoozed", "put_off" (snoozed, but not started),
--   "released", "reserved" (with those of its task that come next), "reserved_alone"
--   delay: in seconds; for exchange_rated also a space and for how long its lane is held
--   data: the result; error type, zero byte, message; or what a snoozed job awaits ('' nothing)
-- Answers the refused ids, then id, record and body of each leased job in turn. Where there are rates or
-- holds it does nothing and answers nothing: the caller has to run exchange_rated.
-- An outcome counts only while its job runs under its token. A script runs alone, so nothing
-- comes between that check and the write, nor between a freed place and the next one's promotion.
-- Works when memory is full: finished jobs are what can be pruned.

if call('EXISTS', RATES, QUEUE_RATES) > 0 then return false end
local limit, inbox, queue_count = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local first = 6 + math.max(queue_count, 0)
local answer = { first <= #ARGV and settle_all(first, #ARGV) or {} }

-- A worker is alive until it is declared dead; a lapsed lease alone changes nothing.
local until_time = limit > 0 and call('ZSCORE', LEASES, ARGV[2])
if until_time then
  local named = queue_count >= 0 and { unpack(ARGV, 6, first - 1) } or nil
  local name = lease_in_time(answer, ARGV[2], named, limit)
  if #answer > 1 or inbox == '' then
    call('HDEL', IDLE, ARGV[2])
  else
    be_idle(ARGV[2], name, named, inbox, until_time)
  end
elseif ARGV[2] ~= '' then
  call('HDEL', IDLE, ARGV[2])
end
write_lanes()
write_counts()
-- What this call made ready and did not take itself is for others.
if made_ready > 0 or left_for_others > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
