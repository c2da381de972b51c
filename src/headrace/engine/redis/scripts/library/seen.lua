-- seen: jobs as people see them.
-- KEYS jobs bodies results errors logs notes waiting awaits
-- Answers for each id that exists: id  record  body  result  error  log  note  awaits ('' where none)
-- with the state of a job that waits for its lane, which only the index `waiting` knows, put right.

local WAITING_STATE = 1

-- `answer` is added to.
local function see(ids, answer)
  local records, bodies, results = read(JOBS, ids), read(BODIES, ids), read(RESULTS, ids)
  local errors, logs, notes = read(ERRORS, ids), read(LOGS, ids), read(NOTES, ids)
  for n, id in ipairs(ids) do
    local record = records[n]
    if record then
      local job = decode(record)
      if job.state == PENDING and job.lane ~= ''
        and call('ZSCORE', WAITING, job.queue .. '\0' .. job.lane .. '\0' .. job.order .. id) then
        job.state = WAITING_STATE
        record = encode(job)
      end
      for _, value in ipairs({ id, record, bodies[n] }) do answer[#answer + 1] = value end
      for _, value in ipairs({
        results[n] or '', errors[n] or '', logs[n] or '', notes[n] or '',
        has(job, AWAITING) and call('HGET', AWAITS, id) or '',
      }) do answer[#answer + 1] = value end
    end
  end
  return answer
end
