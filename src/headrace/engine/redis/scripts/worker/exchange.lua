#!lua flags=allow-oom
-- exchange: record outcomes, then lease ready jobs to one worker.
-- KEYS leases idle signals
-- USES clock layout job lanes children waits expiry cancel settle claim
-- ARGV 1 offset  2 worker id ('' none)  3 limit  4 where it hears of a job that it is handed ('' not)
--   5 number of queues (-1: all)  then the queues,
--   then six for each outcome: id  token  outcome  delay  data  log entry ('' none)
--   outcome: a final state as a number, or "retry", "snoozed", "released", "reserved"
--   data: the result; error type, zero byte, message; or what a snoozed job awaits ('' nothing)
-- Answers the refused ids, then id, record and body of each leased job in turn.
-- An outcome counts only while its job runs under its token. A script runs alone, so nothing
-- comes between that check and the write, nor between a freed place and the next one's promotion.
-- Works when memory is full: finished jobs are what can be pruned.

-- So many jobs that have expired are ended by one call, or a few more.
local MOST_EXPIRED = 500
local limit, inbox, queue_count = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local first = 6 + math.max(queue_count, 0)
local answer = { first <= #ARGV and settle_all(first, #ARGV) or {} }

-- A worker is alive until it is declared dead; a lapsed lease alone changes nothing.
local until_time = limit > 0 and call('ZSCORE', LEASES, ARGV[2])
if until_time then
  local named = queue_count >= 0 and { unpack(ARGV, 6, first - 1) } or nil
  local name, expired = lease(answer, ARGV[2], named, limit)
  local ended = 0
  -- Jobs that it meets too late are ended, and others taken in their place. With very many of them it
  -- stops early, and has somebody come again.
  while #expired > 0 do
    for _, each in ipairs(expired) do
      local job = decode(each.record)
      count(running, job.queue, -1)
      cancel_job(job, each.id, EXPIRED)
    end
    write_cancelled()
    ended = ended + #expired
    if ended >= MOST_EXPIRED then left_for_others = left_for_others + 1 end
    local left = ended < MOST_EXPIRED and limit - (#answer - 1) / 3 or 0
    if left == 0 then break end
    name, expired = lease(answer, ARGV[2], named, left)
  end
  -- Who found nothing may be handed the next job that comes in, as long as its lease is known to
  -- last. Looking again writes nothing, unless that was renewed.
  if #answer > 1 or inbox == '' then
    call('HDEL', IDLE, ARGV[2])
  else
    local queues = named and '\0' .. table.concat(named, '\0') .. '\0' or ''
    local idle = struct.pack('<d', until_time) .. name .. '\0' .. inbox .. '\0' .. queues
    if call('HGET', IDLE, ARGV[2]) ~= idle then call('HSET', IDLE, ARGV[2], idle) end
  end
elseif ARGV[2] ~= '' then
  call('HDEL', IDLE, ARGV[2])
end
write_lanes()
write_counts()
-- What this call made ready and did not take itself is for others.
if made_ready > 0 or left_for_others > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
