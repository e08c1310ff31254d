/** A worker keeps the classes of its hot path alive, so that a full collection while its queue is empty drops no compiled code. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Millpond } from '../../src/index.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

test('a full collection leaves the last attempt that ended', async (t) => {
  const pond = await Millpond.open('memory:')
  t.after(() => pond.close())
  const queue = pond.queue('q')
  const attempts: WeakRef<object>[] = []
  queue.work((_, ctx) => {
    attempts.push(new WeakRef(ctx))
  })
  for (let n = 0; n < 3; n++) await pond.result((await queue.push(n)).id)
  // A WeakRef holds its target until the end of the tick in which it was made or read.
  await tick()
  collect()
  assert.ok(attempts.at(-1)?.deref() !== undefined)
})
