/** How long the Redis store waits for one of several partitions, in a process that is busy itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inTime } from '../../src/stores/redis/patience.ts'

test('an answer that has come in while the process was busy is no late one', async () => {
  const calls = [Promise.resolve('at once'), new Promise<string>((come) => setImmediate(come, 'meanwhile'))]
  const settled = inTime(calls, 1, true)
  for (const end = performance.now() + 20; performance.now() < end; );
  assert.deepEqual(
    (await settled).map((each) => each?.status),
    ['fulfilled', 'fulfilled'],
  )
})

test('one that does not answer is left behind', async () => {
  const never = new Promise<string>(() => {})
  const [first, second] = await inTime([Promise.resolve('at once'), never], 1)
  assert.deepEqual([first?.status, second], ['fulfilled', undefined])
})
