/** Problem documents, as hooks of a service's own make them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problem } from '../../src/web/index.ts'
import { isProblem } from './serving.ts'

test('each status has the title that RFC 9110 and its kin give it', async () => {
  const titles: [number, string][] = [
    [400, 'Bad Request'],
    [401, 'Unauthorized'],
    [402, 'Payment Required'],
    [406, 'Not Acceptable'],
    [413, 'Content Too Large'],
    [422, 'Unprocessable Content'],
    [429, 'Too Many Requests'],
    [431, 'Request Header Fields Too Large'],
    [503, 'Service Unavailable'],
    [599, 'Error'],
  ]
  for (const [status, title] of titles) {
    const document = await isProblem(problem({ status, detail: 'Something went wrong.' }), status)
    assert.equal(document.title, title)
  }
})

test('members of its own, a code with its type, and headers', async () => {
  const given = { status: 429, code: 'QueueFull', detail: 'Slower, please.' } as const
  const response = problem({ ...given, headers: { 'retry-after': '7' }, members: { title: 'Slower', left: 0 } })
  assert.equal(response.headers.get('retry-after'), '7')
  const { type, title, left } = await isProblem(response, 429, 'QueueFull')
  assert.deepEqual([type, title, left], ['urn:millpond:error:QueueFull', 'Slower', 0])
})
