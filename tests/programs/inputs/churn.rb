require 'digest/sha2' # in the main thread: Ruby's loading of Digest::SHA256 on first use races between threads
require 'json'

threads = (1..4).map do |seed|
  Thread.new do
    state = seed
    words = Hash.new { |hash, key| hash[key] = +'' }
    80_000.times do
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      words[state % 997] << ('a'.ord + state % 26).chr * (state % 30)
    end
    Digest::SHA256.hexdigest(words.sort.to_s)
  end
end
puts threads.map(&:value)
big = (1..40_000).map { |i| { 'id' => i, 'name' => "n#{i}" * (i % 9) } }
back = JSON.parse(JSON.generate(big))
puts back == big, back.sum { |row| row['name'].size }
GC.compact if GC.respond_to?(:compact)
puts (1..2000).inject(:*).to_s.size
