#!lua flags=allow-oom
-- due: make scheduled jobs pending whose time has come, earliest first.
-- KEYS due jobs signals parked_jobs parked_lines
-- USES clock layout job lanes waits
-- ARGV 1 offset  2 limit
-- Answers how many moved, and in how many seconds the next is due ('' none).
-- A job that kept its lane place during the wait goes straight to the ready line. One that was never
-- claimed is new to its lane.

-- Jobs that are due in the same moment count in the order in which they came.
local function earlier(one, other)
  if one.run_at ~= other.run_at then return one.run_at < other.run_at end
  return sub(one.order, 5) < sub(other.order, 5)
end

local ids = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[2])
local moved, in_order = {}, true
for n, record in ipairs(read(JOBS, ids)) do
  local job = decode(record)
  job.id, moved[n] = ids[n], job
  if n > 1 and earlier(job, moved[n - 1]) then in_order = false end
end
if not in_order then table.sort(moved, earlier) end

local jobs, lanes, parked, members = {}, {}, {}, {}
for n, job in ipairs(moved) do
  count(scheduled, job.queue, -1)
  stop_waiting(job, job.id)
  if has(job, PARKED) then
    parked[#parked + 1] = job.id
    members[#members + 1] = job.queue .. '\0' .. job.lane .. '\0' .. job.order .. job.id
  end
  local lane = make_pending(job, job.id, job.token == 0)
  if lane then lanes[lane.name] = lane end
  jobs[2 * n - 1], jobs[2 * n] = job.id, encode(job)
end
write('ZREM', DUE, ids)
write('ZREM', PARKED_JOBS, parked)
write('ZREM', PARKED_LINES, members)
write('HSET', JOBS, jobs)
for _, lane in pairs(lanes) do admit(lane) end
write_lines()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
local next = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
return { #ids, next[2] and string.format('%.6f', math.max(0, tonumber(next[2]) - now)) or '' }
