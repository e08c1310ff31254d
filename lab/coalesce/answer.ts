/** What the upstream answers, and so the service. */
export const ANSWER = {
  origin: '203.0.113.7',
  url: 'https://upstream.example/headers',
  headers: { accept: '*/*', host: 'upstream.example', 'user-agent': 'service/1.0', 'x-forwarded-proto': 'https' },
}
export type Answer = typeof ANSWER
