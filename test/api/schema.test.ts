/** Queues with a schema: what is refused, and what the handler gets. */
import assert from 'node:assert/strict'
import { z } from 'zod'
import type { Job, StandardSchema } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { inState, onEachStore, refused } from './suite.ts'

const email = z.object({
  to: z.email(),
  copies: z.number().int().default(1),
  tags: z.array(z.object({ name: z.string().transform((name) => `${name}!`) })).default([]),
})

onEachStore('schema', {
  'what does not fit is refused, and nothing is stored': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('emails', { schema: email })
    const wrong: { to: string } = { to: 'nobody' }
    const error = await refused(queue.push(wrong), 'SchemaMismatch', /to: .*email/i)
    assert.equal(error.queue, 'emails')
    const nested: object = { to: 5, tags: [{ name: 'ok' }, { name: 7 }] }
    // A caller without types can pass anything.
    const loose = pond.queue<object>('emails', { schema: email })
    const { issues } = await refused(loose.push(nested), 'SchemaMismatch', /and 1 more/)
    assert.deepEqual(
      issues?.map(({ path }) => path),
      ['to', 'tags.1.name'],
    )
    const many = await refused(loose.pushMany([{ to: 'a@example.org' }, nested]), 'SchemaMismatch')
    assert.equal(many.issues?.length, 2)
    assert.equal((await queue.stats()).counts.waiting, 0)
  },

  'the handler gets the output, transformed once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('emails', { schema: email })
    const seen: z.output<typeof email>[] = []
    queue.work((job) => void seen.push(job.data))
    const { id } = await queue.push({ to: 'a@example.org', tags: [{ name: 'new' }] })
    await until(() => seen.length === 1)
    assert.deepEqual(seen, [{ to: 'a@example.org', copies: 1, tags: [{ name: 'new!' }] }])
    assert.deepEqual((await pond.job(id))?.data, { to: 'a@example.org', tags: [{ name: 'new' }] }, 'stored as pushed')
  },

  'what was stored without the schema is checked before work': async ({ open }) => {
    const pond = await open()
    const { id } = await pond.queue('emails', { retry: { attempts: 1 } }).push({ to: 7 })
    let ran = false
    pond.queue('emails', { schema: email }).work(() => {
      ran = true
    })
    const info = await inState(pond, id, 'dead')
    assert.equal(info.error?.code, 'SchemaMismatch')
    assert.match(info.error?.message ?? '', /to: /)
    assert.equal(ran, false)
  },

  'an asynchronous schema': async ({ open }) => {
    const pond = await open()
    const schema = z.string().refine(async (text) => {
      await new Promise(setImmediate)
      return text.startsWith('ok')
    }, 'not ok')
    const queue = pond.queue('q', { schema })
    await refused(queue.push('bad'), 'SchemaMismatch', /not ok/)
    await refused(queue.pushMany(['ok', 'bad']), 'SchemaMismatch', /not ok/)
    assert.equal((await queue.stats()).counts.waiting, 0)
    queue.work((job) => job.data.length)
    const { id } = await queue.push('ok!')
    assert.equal(await pond.result(id), 3)
  },

  'a schema written by hand, with types': async ({ open }) => {
    const pond = await open()
    const schema: StandardSchema<string, number> = {
      '~standard': {
        version: 1,
        vendor: 'hand',
        validate: (value) =>
          typeof value === 'string' && value !== ''
            ? { value: value.length }
            : { issues: [{ message: 'must be text', path: [{ key: 'a' }, 0, Symbol('s')] }] },
      },
    }
    const queue = pond.queue('q', { schema })
    const { issues } = await refused(queue.push(''), 'SchemaMismatch', /a\.0\.Symbol\(s\): must be text/)
    assert.deepEqual(issues, [{ message: 'must be text', path: 'a.0.Symbol(s)' }])
    queue.work((job: Job<number>) => job.data + 1)
    const { id } = await queue.push('four')
    assert.equal(await pond.result(id), 5)
  },
})
