-- records_by_state: records of some jobs, of those in the states asked for.
-- KEYS jobs errors
-- `first` is where in ARGV the states begin: numbers in one text ('' all), then the number of error
-- types (0 any) and these. `answer` is added to: id and record of each job in turn that is in one of the
-- states; no record but '' if its error is of another type.
-- A long walk passes over most jobs: those are not sent, and a record is read only if the error fits.

-- Some jobs without those that have no error; `wrong` is added to: those whose error is of another type.
local function with_error(ids, types, wrong)
  local left, right = {}, {}
  for n, error in ipairs(read(ERRORS, ids)) do
    local id = ids[n]
    if error then
      left[#left + 1] = id
      if types[string.match(error, '^[^%z]*')] then right[#right + 1] = id else wrong[id] = '' end
    end
  end
  return left, right
end

local function choose(ids, first, answer)
  local any, states, types, last = ARGV[first] == '', {}, {}, #answer
  for number in string.gmatch(ARGV[first], '%d') do states[tonumber(number)] = true end
  for i = first + 2, first + 1 + tonumber(ARGV[first + 1]) do types[ARGV[i]] = true end

  local function add(id, record)
    answer[last + 1], answer[last + 2] = id, record
    last = last + 2
  end

  if not next(types) then
    for n, record in ipairs(read(JOBS, ids)) do
      if record and (any or states[string.byte(record)]) then add(ids[n], record) end
    end
    return answer
  end
  local found = {}
  local left, right = with_error(ids, types, found)
  for n, record in ipairs(read(JOBS, right)) do
    if record and (any or states[string.byte(record)]) then found[right[n]] = record end
  end
  for _, id in ipairs(left) do
    if found[id] then add(id, found[id]) end
  end
  return answer
end
