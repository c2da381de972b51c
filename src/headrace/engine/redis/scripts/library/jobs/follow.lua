-- follow: record outcomes and store the jobs that follow from those that count.
-- KEYS signals
-- Needs settle and what `store` needs: insert_related, or insert_rated.

-- Reads ARGV as the script `follow` says. Returns the refused ids.
local function follow_all(store)
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
  store(values, 1)
  -- Storing jobs tells about those that are ready.
  if made_ready <= 0 and left_for_others > 0 then call('PUBLISH', SIGNALS, 'work') end
  return refused
end
