-- children: jobs that jobs have made, as long as they are unfinished.
-- KEYS unfinished
-- A member is parent, zero, group ('' none), zero, id, with score 0: those of a parent, and those of one
-- of its groups, lie together, so counting them costs two look-ups, however many there are.
-- Changes are collected and written together. Other jobs are in none of this.

local begun_children, ended_children = {}, {}

-- `tail` is the end of the child's record, as `family_of` reads it.
local function child_place(id, tail)
  local parent, group = family_of(tail)
  return parent .. '\0' .. group .. '\0' .. id
end

local function begin_child(id, tail)
  local n = #begun_children
  begun_children[n + 1], begun_children[n + 2] = 0, child_place(id, tail)
end

local function end_child(id, tail)
  ended_children[#ended_children + 1] = child_place(id, tail)
end

local function write_children()
  write('ZREM', UNFINISHED, ended_children)
  write('ZADD', UNFINISHED, begun_children)
end
