-- shown_jobs: jobs as people see them.
-- KEYS jobs bodies results errors logs notes waiting awaits admitted expiry
-- Answers for each id that exists: id  record  body  result  error  log  note  awaits  when it was
-- admitted to its lane  by when it has to start ('' where none), with the state of a job that waits for
-- its lane, which only the index `waiting` knows, put right. Needs body.

local WAITING_STATE = 1
local ARRAY_OF_FIVE = '\149'
local EMPTY_ARGUMENTS = '\196\2{}'
local NO_META = '\192'

-- A body without arguments and meta.
local function brief_body(body)
  local first, last = middle_of(body)
  return ARRAY_OF_FIVE .. EMPTY_ARGUMENTS .. sub(body, first, last) .. NO_META
end

-- `answer` is added to. `brief`: bodies without what may be large, and neither result nor log.
local function see(ids, answer, brief)
  local records, errors, notes = read(JOBS, ids), read(ERRORS, ids), read(NOTES, ids)
  local bodies, results = not brief and read(BODIES, ids), brief and {} or read(RESULTS, ids)
  local logs = brief and {} or read(LOGS, ids)
  for n, id in ipairs(ids) do
    local record = records[n]
    if record then
      local job = decode(record)
      if job.state == PENDING and job.lane ~= ''
        and call('ZSCORE', WAITING, job.queue .. '\0' .. job.lane .. '\0' .. job.order .. id) then
        job.state = WAITING_STATE
        record = encode(job)
      end
      -- One after the other: of all that are large, only one is in memory then.
      local body = bodies and bodies[n] or brief_body(call('HGET', BODIES, id))
      for _, value in ipairs({
        id, record, body, results[n] or '', errors[n] or '', logs[n] or '', notes[n] or '',
        has(job, AWAITING) and call('HGET', AWAITS, id) or '',
        job.lane ~= '' and call('HGET', ADMITTED, id) or '',
        has(job, EXPIRES) and job.state < RUNNING and job.attempt == 0 and call('ZSCORE', EXPIRY, id)
          or '',
      }) do answer[#answer + 1] = value end
    end
  end
  return answer
end
