<?php
// A web page's work many times over: JSON, templates, sorting, regular expressions.
// Arguments: orders in JSON, rounds.
class Line
{
    public function __construct(public string $article, public int $count, public float $price) {}
}

$text = file_get_contents($argv[1]);
$pages = 0;
for ($round = 0; $round < (int)$argv[2]; $round++) {
    $cities = [];
    foreach (json_decode($text, true) as $order) {
        $lines = array_map(fn($line) => new Line($line['article'], $line['count'], $line['price']),
                           $order['lines']);
        usort($lines, fn($one, $other) => $one->price <=> $other->price);
        $rows = '';
        foreach ($lines as $line) {
            $rows .= sprintf('<tr><td>%s</td><td>%d</td></tr>', $line->article, $line->count);
        }
        $cities[$order['customer']['city']][] = ['name' => $order['customer']['name'],
            'rows' => $rows, 'note' => preg_replace('/(\w)\1+/', '$1', $order['note'])];
    }
    ksort($cities);
    foreach ($cities as $city => $orders) {
        $pages += strlen(htmlspecialchars(implode('', array_column($orders, 'rows'))) . $city);
        $pages += strlen(json_encode($orders));
    }
}
echo $pages, "\n";
