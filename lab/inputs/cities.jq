# What each city bought: orders, sum of money and the articles, largest sum first.
group_by(.customer.city)
| map({city: .[0].customer.city, orders: length, notes: (map(.note | length) | add),
       sum: (map(.lines[] | .price * .count) | add), articles: (map(.lines[].article) | unique)})
| sort_by(-.sum)
