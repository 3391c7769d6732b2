# Objects, strings, symbols and JSON under Ruby's garbage collector. Arguments: text, rounds.
require 'json'

Place = Struct.new(:line, :column, :before)

index = Hash.new { |words, name| words[name] = [] }
File.foreach(ARGV[0]).with_index do |line, number|
  line.downcase.scan(/\w+/) { |word| index[word] << Place.new(number, $~.begin(0), line[0, 12]) }
end

def tree(depth)
  depth.zero? ? nil : { left: tree(depth - 1), right: [tree(depth - 1)], name: "n#{depth}" }
end

def count(node)
  node ? 1 + count(node[:left]) + count(node[:right][0]) : 0
end

state, nodes, live = 42, 0, {}
ARGV[1].to_i.times do |round|
  nodes += count(tree(11))
  8_000.times do
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    live[state % 4099] = "#{round} " + 'x' * (state % 200)
  end
  rows = index.first(300).map { |name, places| { name: name, lines: places.map(&:line).uniq } }
  nodes += JSON.parse(JSON.generate(rows)).sum { |row| row['lines'].size }
end
sizes = index.group_by { |name, places| [name.size, places.size.bit_length] }
puts index.size, sizes.size, nodes, live.sum { |slot, text| slot * text.size }
puts index.keys.sort.map { |name| name.gsub(/([aeiou])/) { $1.upcase } }.join(' ').size
