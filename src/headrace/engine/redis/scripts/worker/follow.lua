#!lua
-- follow: record outcomes and store the jobs that follow from those that count.
-- KEYS signals
-- USES clock layout job lanes children waits expiry settle queues insert related
-- ARGV 1 offset  2 number of outcomes  then six for each as exchange reads them, each job once,
--   then for each outcome: number of its followers, and these as library/insert.lua reads them
-- Returns the refused ids.
-- A script runs alone, so the followers are there if and only if the outcome counted. Not in exchange:
-- that works when memory is full, and new jobs must not.

local total = tonumber(ARGV[2])
local last = 2 + 6 * total
local refused = settle_all(3, last)
local stale = {}
for _, id in ipairs(refused) do stale[id] = true end

local values, at = {}, last + 1
for n = 1, total do
  local size = 4 * tonumber(ARGV[at])
  if not stale[ARGV[6 * n - 3]] then
    for i = at + 1, at + size do values[#values + 1] = ARGV[i] end
  end
  at = at + 1 + size
end
insert_related(values, 1)
-- Storing jobs tells about those that are ready.
if made_ready <= 0 and left_for_others > 0 then call('PUBLISH', SIGNALS, 'work') end
return refused
