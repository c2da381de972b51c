-- related: store jobs of which some have a parent, or a time to start by.
-- KEYS children unfinished expiry
-- `children` has parent, zero, id; library/jobs/children.lua tells about `unfinished`, library/jobs/expiry.lua about
-- `expiry`. Not in library/jobs/insert.lua: it would cost every small call of insert a hundredth.
-- The body of a job that has to start by a time has a struct of that in front: a moment, or how many
-- seconds are left with a minus.

-- As `insert_jobs`.
local function insert_related(values, first)
  local times = {}
  for i = first, #values, 4 do
    local _, flags = struct.unpack('<HB', values[i + 1])
    if bit.band(flags, EXPIRES) ~= 0 then
      local at = struct.unpack('<d', values[i + 3])
      times[(i - first) / 4 + 1] = at > 0 and at or now - at
      values[i + 3] = sub(values[i + 3], 9)
    end
  end
  local answer = insert_jobs(values, first)
  local children, unfinished, expiry = {}, {}, {}
  for n, id in ipairs(answer) do
    local head = values[first + 4 * n - 3]
    local _, flags, _, _, _, _, _, rest = struct.unpack(HEAD, head)
    local created = sub(id, 1, 1) ~= '='
    if created and bit.band(flags, CHILD) ~= 0 then
      local parent, group = family_of(sub(head, rest))
      put(children, parent .. '\0' .. id)
      put(unfinished, parent .. '\0' .. group .. '\0' .. id)
    end
    if created and times[n] then
      local last = #expiry
      expiry[last + 1], expiry[last + 2] = times[n], id
    end
  end
  write('ZADD', CHILDREN, children)
  write('ZADD', UNFINISHED, unfinished)
  write('ZADD', EXPIRY, expiry)
  return answer
end
