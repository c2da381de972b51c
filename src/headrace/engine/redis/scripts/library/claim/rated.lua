-- rated: store jobs of which some have a rate, a parent, or a time to start by.
-- KEYS signals
-- Needs rates and related. The body of a job with a rate has in front what `job_rates` keeps of it; behind
-- the time to start by, if it has one.

local JOB_RATE_SIZE = 29

-- Takes what a job says of its rate out of its body; `at` is where its values begin.
local function take_rate(values, at)
  local _, flags = struct.unpack('<HB', values[at + 1])
  local body, before = values[at + 3], bit.band(flags, EXPIRES) ~= 0 and 8 or 0
  values[at + 3] = sub(body, 1, before) .. sub(body, before + JOB_RATE_SIZE + 1)
  return sub(body, before + 1, before + JOB_RATE_SIZE)
end

-- As `insert_jobs`.
local function insert_rated(values, first)
  local rates, said = {}, {}
  for i = first, #values, 4 do
    local _, flags = struct.unpack('<HB', values[i + 1])
    if bit.band(flags, RATED) ~= 0 then rates[(i - first) / 4 + 1] = take_rate(values, i) end
  end
  local answer = insert_related(values, first)
  for n, id in ipairs(answer) do
    if rates[n] and sub(id, 1, 1) ~= '=' then
      local _, _, _, _, _, queue, lane = struct.unpack(HEAD, values[first + 4 * n - 3])
      said[#said + 1] = { id = id, queue = queue, lane = lane, rate = rates[n] }
    end
  end
  local before = made_ready
  keep_rates(said)
  write_counts()
  if made_ready > before then call('PUBLISH', SIGNALS, 'work') end
  return answer
end
