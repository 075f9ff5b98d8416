-- Requests of wrk: boxes of an array of uint16, one after another, with pseudo-random numbers (MINSTD) below 1000.
--
-- Arguments after `--`: the path, the side of a box, and boxes along each side of the array.
local requests, at = {}, 0

function init(arguments)
  local path, side, along = arguments[1], tonumber(arguments[2]), tonumber(arguments[3])
  local state = 1
  for place = 0, along * along - 1 do
    local elements = {}
    for element = 1, side * side do
      state = state * 16807 % 2147483647
      local number = state % 1000
      elements[element] = string.char(number % 256, math.floor(number / 256))
    end
    local y, x = math.floor(place / along) * side, place % along * side
    local slice = string.format("?slice=%d:%d,%d:%d", y, y + side, x, x + side)
    local headers = {["Content-Type"] = "application/octet-stream"}
    requests[place] = wrk.format("PUT", path .. slice, headers, table.concat(elements))
  end
end

function request()
  local place = at % (#requests + 1)
  at = at + 1
  return requests[place]
end
