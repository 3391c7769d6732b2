local state, sum = 42, 0
local function draw(n) state = (state * 1103515245 + 12345) % 2147483648; return state % n end
local live = {}
for i = 1, 1000000 do
  local slot = draw(4099)
  if live[slot] then sum = sum + #live[slot][1] end
  live[slot] = { string.rep(string.char(97 + draw(26)), 1 + draw(200)), { i } }
end
local parts = {}
for slot = 0, 4098 do parts[#parts + 1] = live[slot] and live[slot][1] or '' end
local text = table.concat(parts, '-')
print(sum, #text, (text:gsub('(%a)%1+', '%1')):sub(1, 64))
collectgarbage()
print(select(2, text:gsub('-', '')), pcall(string.rep, 'x', 1 << 40) == false)
