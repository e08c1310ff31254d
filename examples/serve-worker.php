<?php
// Works on a queue. PHP's own streams are all it needs.
function post(string $path, array $body, array $headers = []): array
{
    $headers[] = 'Content-Type: application/json';
    if (getenv('MILLPOND_TOKEN')) {
        $headers[] = 'Authorization: Bearer ' . getenv('MILLPOND_TOKEN');
    }
    $content = json_encode($body, JSON_THROW_ON_ERROR);
    $http = ['method' => 'POST', 'header' => $headers, 'content' => $content, 'timeout' => 90, 'ignore_errors' => true];
    $server = getenv('MILLPOND_URL') ?: 'http://127.0.0.1:8080';
    $text = file_get_contents($server . $path, false, stream_context_create(['http' => $http]));
    return json_decode($text, true, flags: JSON_THROW_ON_ERROR);
}

function work(array $data): string
{
    return 'sent to ' . $data['to'];
}

$stopping = false; // Asked to stop, it does so once the claim is answered and the job done.
pcntl_async_signals(true);
foreach ([SIGTERM, SIGINT] as $number) {
    pcntl_signal($number, function () use (&$stopping) { $stopping = true; });
}
while (!$stopping) {
    $claims = post('/v1/queues/emails/claims', ['worker' => 'php', 'lease' => 60000], ['Prefer: wait=10']);
    foreach ($claims['jobs'] ?? throw new RuntimeException($claims['detail']) as $job) {
        try {
            [$word, $told] = ['complete', ['result' => work($job['data'])]];
        } catch (Throwable $error) {
            [$word, $told] = ['fail', ['error' => ['name' => get_class($error), 'message' => $error->getMessage()]]];
        }
        $answer = post("/v1/queues/emails/jobs/{$job['id']}/$word", ['fence' => $job['fence']] + $told);
        if (($answer['status'] ?? 0) >= 400 && $answer['status'] !== 409) { // 409: the lease ran out, another has the job
            throw new RuntimeException($answer['detail']);
        }
    }
}
