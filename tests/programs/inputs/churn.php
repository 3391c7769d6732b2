<?php
// USE_ZEND_ALLOC=0 sends every zval of this through malloc.
mt_srand(42);
$live = [];
$sum = 0;
for ($i = 0; $i < 400000; $i++) {
    $slot = mt_rand(0, 4000);
    if (isset($live[$slot])) $sum += strlen($live[$slot]['text']);
    $text = str_repeat(chr(97 + $i % 26), mt_rand(1, 300));
    $live[$slot] = ['text' => $text, 'list' => [$i, $slot]];
}
ksort($live);
$json = json_encode($live);
echo $sum, ' ', count($live), ' ', hash('sha256', $json), "\n";
var_dump(json_decode($json, true) === $live);
$short = preg_replace_callback('/(\w)\1+/', fn($m) => strlen($m[0]) . $m[1], $json);
echo hash('sha256', $short), "\n";
