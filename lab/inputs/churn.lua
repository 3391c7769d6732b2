-- Words of a text into tables and back, closures, and trees that die young. Arguments: text, rounds.
local path, rounds = arg[1], tonumber(arg[2])

local words, order = {}, {}
local number = 0
for line in io.lines(path) do
  number = number + 1
  for word in line:lower():gmatch('%a+') do
    local places = words[word]
    if not places then places = {}; words[word] = places; order[#order + 1] = word end
    places[#places + 1] = { line = number, length = #line, before = line:sub(1, 12) }
  end
end
table.sort(order)

local function tree(depth)
  if depth == 0 then return false end
  return { left = tree(depth - 1), right = tree(depth - 1), name = 'n' .. depth }
end

local function count(node)
  return node and 1 + count(node.left) + count(node.right) or 0
end

local function adder(step)
  local total = 0
  return function(value) total = total + value * step; return total end
end

local state, nodes, sum = 42, 0, 0
local live = {}
for round = 1, rounds do
  nodes = nodes + count(tree(12))
  local add = adder(round)
  for _ = 1, 10000 do
    state = (state * 1103515245 + 12345) % 2147483648
    local slot = state % 4099
    if live[slot] then sum = add(#live[slot]) end
    live[slot] = order[state % #order + 1] .. state % 97 .. string.rep('x', state % 120)
  end
end
local parts = {}
for slot = 0, 4098 do parts[#parts + 1] = live[slot] end
print(number, #order, nodes, sum, #table.concat(parts, '-'):gsub('(%a)%1+', '%1'))
