#!lua flags=allow-oom
-- wake: make suspended jobs due at once for which something that they await has come about.
-- KEYS jobs due entries unfinished signals
-- USES clock layout job lanes waits
-- ARGV 1 offset, then ids
-- Answers the ids that were woken. Nothing comes between looking and waking, so whoever changes what a
-- job awaits and looks afterwards cannot miss it.

local function come_about(id, awaited)
  if awaited.type == 'event' then
    return call('HEXISTS', ENTRIES, id .. '\0event\0' .. awaited.name) == 1
  end
  local line = id
  if awaited.group ~= cjson.null then line = id .. '\0' .. awaited.group end
  return call('ZLEXCOUNT', UNFINISHED, '[' .. line .. '\0', '(' .. line .. '\1') <= awaited.left
end

local function is_over(id)
  for _, awaited in ipairs(cjson.decode(call('HGET', AWAITS, id))) do
    if come_about(id, awaited) then return true end
  end
  return false
end

local answer, lanes = {}, {}
for i = 2, #ARGV do
  local id = ARGV[i]
  if call('ZSCORE', SUSPENDED, id) and is_over(id) then
    local job = decode(call('HGET', JOBS, id))
    stop_waiting(job, id)
    call('ZREM', DUE, id)
    count(scheduled, job.queue, -1)
    job.run_at = now
    local lane = make_pending(job, id)
    if lane then lanes[lane.name] = lane end
    call('HSET', JOBS, id, encode(job))
    answer[#answer + 1] = id
  end
end
for _, lane in pairs(lanes) do admit(lane) end
write_lines()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
