-- related: store jobs of which some have a parent.
-- KEYS children unfinished
-- `children` has parent, zero, id; library/children.lua tells about `unfinished`. Not in
-- library/insert.lua: it would cost every small call of insert a hundredth.

-- As `insert_jobs`.
local function insert_related(values, first)
  local answer = insert_jobs(values, first)
  local children, unfinished = {}, {}
  for n, id in ipairs(answer) do
    local head = values[first + 4 * n - 3]
    local _, flags, _, _, _, _, _, rest = struct.unpack(HEAD, head)
    if bit.band(flags, CHILD) ~= 0 and sub(id, 1, 1) ~= '=' then
      local parent, group = family_of(sub(head, rest))
      put(children, parent .. '\0' .. id)
      put(unfinished, parent .. '\0' .. group .. '\0' .. id)
    end
  end
  write('ZADD', CHILDREN, children)
  write('ZADD', UNFINISHED, unfinished)
  return answer
end
