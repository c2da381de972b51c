#!lua
-- note: record progress, stage, message and entries of running jobs.
-- KEYS jobs notes
-- USES clock layout job entry
-- ARGV 1 offset, then for each note: id  token  note (msgpack: stage, progress, message; false: as
--   it was)  number of entries, then three for each entry: kind  name  body
-- Answers the refused ids. Nothing comes between the check of the token and the write.

local refused = {}

local function keep_note(id, change)
  local new = cmsgpack.unpack(change)
  local kept = call('HGET', NOTES, id)
  local old = kept and cmsgpack.unpack(kept) or { false, false, false }
  for i = 1, 3 do
    if new[i] ~= false then old[i] = new[i] end
  end
  call('HSET', NOTES, id, cmsgpack.pack(old))
end

local i = 2
while i <= #ARGV do
  local id, token, entries = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 3])
  local record = call('HGET', JOBS, id)
  local job = record and decode(record)
  if job and job.state == RUNNING and job.token == token then
    if ARGV[i + 2] ~= '' then keep_note(id, ARGV[i + 2]) end
    for n = i + 4, i + 1 + 3 * entries, 3 do
      keep_entry(id, token, ARGV[n], ARGV[n + 1], ARGV[n + 2])
    end
  else
    refused[#refused + 1] = id
  end
  i = i + 4 + 3 * entries
end
return refused
