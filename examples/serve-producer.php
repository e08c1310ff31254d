<?php
// Pushes a job and waits for its result. PHP's own streams are all it needs.
function call(string $method, string $path, ?array $body = null, array $headers = []): array
{
    $headers[] = 'Content-Type: application/json';
    if (getenv('MILLPOND_TOKEN')) {
        $headers[] = 'Authorization: Bearer ' . getenv('MILLPOND_TOKEN');
    }
    $http = ['method' => $method, 'header' => $headers, 'timeout' => 90, 'ignore_errors' => true];
    if ($body !== null) {
        $http['content'] = json_encode($body, JSON_THROW_ON_ERROR);
    }
    $server = getenv('MILLPOND_URL') ?: 'http://127.0.0.1:8080';
    $text = file_get_contents($server . $path, false, stream_context_create(['http' => $http]));
    $answer = json_decode($text, true, flags: JSON_THROW_ON_ERROR);
    if (($answer['status'] ?? 0) >= 400) {
        throw new RuntimeException($answer['detail']);
    }
    return $answer;
}

// The key makes this the same job, however often it is sent.
$job = call('POST', '/v1/queues/emails/jobs', ['data' => ['to' => 'ada@example.org']], ['Idempotency-Key: welcome-ada-php']);
while (!in_array($job['state'] ?? '', ['done', 'dead', 'cancelled'])) {
    $job = call('GET', '/v1/jobs/' . $job['id'], headers: ['Prefer: wait=30']);
}
echo $job['state'], ' ', $job['result'] ?? '', "\n";
