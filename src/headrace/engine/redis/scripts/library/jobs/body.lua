-- body: what no script but insert_by_policy looks at, as codec.py packs it: an array of five, of which
-- arguments are the first and meta the last.

-- Where that begins which is between them, and where it ends.
local function middle_of(body)
  local kind, first = string.byte(body, 2), nil
  if kind == 196 then first = 4 + string.byte(body, 3)
  elseif kind == 197 then first = 5 + struct.unpack('>H', body, 3)
  else first = 7 + struct.unpack('>I', body, 3) end
  return first, (cmsgpack.unpack_limit(body, 3, first - 1))
end
