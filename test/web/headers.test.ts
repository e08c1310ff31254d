/** What is read of request headers where no request of `accept` or `follow` shows it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { preferredFormat, prefersEvents } from '../../src/values/encoding/accept.ts'

test('the format that Accept prefers', () => {
  const cases: [string | null | undefined, 'json' | 'msgpack'][] = [
    [undefined, 'json'],
    [null, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['text/html', 'json'],
    ['text/event-stream', 'json'],
    ['application/msgpack', 'msgpack'],
    ['text/event-stream, application/msgpack;q=0.1', 'msgpack'],
    ['application/x-msgpack, */*;q=0.1', 'msgpack'],
    ['APPLICATION/VND.MSGPACK', 'msgpack'],
    ['application/json, application/msgpack', 'json'],
    ['application/msgpack, application/json', 'msgpack'],
    ['application/msgpack;q=0.5, application/json', 'json'],
    ['application/msgpack;q=0.5, application/json;q=0.1, application/*;q=0.9', 'json'],
    ['application/msgpack;q=0, text/html', 'json'],
    ['application/vnd.msgpack;q=2', 'json'],
    ['application/msgpack;q=x', 'json'],
    [`${'x,'.repeat(100_000)}application/msgpack`, 'json'],
    [`application/msgpack,${'x,'.repeat(100_000)}`, 'json'],
  ]
  for (const [accept, format] of cases) assert.equal(preferredFormat(accept), format, accept?.slice(0, 60))
})

test('whether events are preferred', () => {
  const prefers = (accept?: string) =>
    prefersEvents(new Request('http://localhost/', accept === undefined ? {} : { headers: { accept } }))
  for (const accept of [
    'text/event-stream',
    'TEXT/Event-Stream, */*;q=0.1',
    'application/json;q=0.5, text/event-stream',
  ]) {
    assert.equal(prefers(accept), true, accept)
  }
  for (const accept of [undefined, '*/*', 'application/json, text/event-stream', 'text/event-stream;q=0']) {
    assert.equal(prefers(accept), false, accept)
  }
})
