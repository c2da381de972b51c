-- clock: the server's time plus the offset that tests move, and writes in bounded pieces.
-- ARGV 1 offset in seconds

local call = redis.call
local sub = string.sub

local time = call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000 + tonumber(ARGV[1])

-- Lua refuses to unpack long lists; an even piece keeps field and value together.
local PIECE = 2000

local function write(command, key, list)
  for first = 1, #list, PIECE do
    call(command, key, unpack(list, first, math.min(first + PIECE - 1, #list)))
  end
end

local function read(key, fields)
  local values = {}
  for first = 1, #fields, PIECE do
    local part = call('HMGET', key, unpack(fields, first, math.min(first + PIECE - 1, #fields)))
    for i = 1, #part do values[first + i - 1] = part[i] end
  end
  return values
end
