/** What goes in comes out, whatever it is, and belongs to nobody else. */

import assert from 'node:assert/strict'
import type { ClaimedJob, Encoded } from '../../src/values/jobs/records.ts'
import { needs } from '../../src/values/operations/capabilities.ts'
import { newJob, newJobs, recordOf } from '../support/jobs.ts'
import { claim, conformance, first, running } from './suite.ts'

const MIB = 1024 * 1024
const WEIRD = `'"\`; drop table jobs; --\\ \n\r\t \u2028\u2029 \u{1F600}\u{1F469}\u200D\u{1F467} \uFEFF\u0301 \uD83D\uDE00 %s \${x} {}[]:`

function bytesOf(encoded: Encoded | null | undefined): Uint8Array {
  assert.ok(encoded?.body instanceof Uint8Array, 'bytes come back as a Uint8Array')
  return encoded.body
}

conformance('payloads', {
  'a batch of 500 keeps its order': async (store) => {
    const jobs = newJobs(500).map((job, i) => ({ ...job, data: { encoding: 'json', body: String(i) } as const }))
    const outcomes = await store.operations.push({ jobs })
    assert.deepEqual(
      outcomes,
      jobs.map(({ id }) => ({ status: 'pushed', id })),
    )
    const claimed: ClaimedJob[] = []
    // RabbitMQ delivers while the claim waits, and so a claim may answer with a part.
    while (claimed.length < 500) claimed.push(...(await claim(store, { limit: 500 - claimed.length })).jobs)
    assert.deepEqual(
      claimed.map(({ data }) => data.body),
      jobs.map(({ data }) => data.body),
    )
    const done = await store.operations.complete({
      queue: 'q',
      items: claimed.map(({ id, fence }) => ({ id, fence, result: null })),
    })
    assert.deepEqual(new Set(done), new Set(['ok']))
    assert.equal(done.length, 500)
  },

  'an empty batch does nothing': async (store) => {
    assert.deepEqual(await store.operations.push({ jobs: [] }), [])
    assert.deepEqual(await store.operations.complete({ queue: 'q', items: [] }), [])
    assert.deepEqual(await store.operations.fail({ queue: 'q', items: [] }), [])
    assert.deepEqual(await store.operations.release({ queue: 'q', items: [] }), [])
    assert.deepEqual(await store.operations.extend({ queue: 'q', lease: 100, items: [] }), [])
    assert.deepEqual(await store.operations.cancel({ ids: [] }), [])
    assert.deepEqual(await store.operations.find({ ids: [] }), [])
    assert.deepEqual(await store.operations.outcomes({ ids: [] }), [])
    assert.equal((await store.operations.requeue({ ids: [] })).requeued, 0)
    assert.deepEqual(await store.operations.update({ items: [] }), [])
    assert.deepEqual(await store.operations.remove({ ids: [] }), { removed: 0, more: false })
    assert.deepEqual(await store.operations.restore({ records: [] }), [])
    assert.deepEqual(await store.operations.heartbeat({ workers: [], gone: [] }), [])
    await store.operations.record({ slices: [] })
    assert.deepEqual(await store.operations.stats({}), [])
  },

  'outcomes answer for the first ids where results are large': async (store) => {
    needs(store, 'find', 'outcomes')
    needs(store, 'results', 'a result')
    const result: Encoded = { encoding: 'bytes', body: new Uint8Array(MIB).fill(7) }
    const jobs = newJobs(20)
    await store.operations.push({ jobs })
    const claimed = (await claim(store, { limit: 20 })).jobs
    for (const { id, fence } of claimed) await store.operations.complete({ queue: 'q', items: [{ id, fence, result }] })
    const ids = jobs.map(({ id }) => id)
    for (let from = 0; from < ids.length; ) {
      const found = await store.operations.outcomes({ ids: ids.slice(from) })
      assert.ok(found.length >= 1 && found.length <= 9, `${found.length} MiB are not bounded`)
      assert.deepEqual(
        found.map((outcome) => [outcome?.id, outcome?.state, bytesOf(outcome?.result).length]),
        ids.slice(from, from + found.length).map((id) => [id, 'done', MIB]),
      )
      from += found.length
    }
  },

  'a mebibyte of text and of bytes': async (store) => {
    const text: Encoded = { encoding: 'json', body: `"${'é'.repeat(MIB / 2)}"` }
    const bytes: Encoded = { encoding: 'bytes', body: Uint8Array.from({ length: MIB }, (_, i) => (i * 31) % 256) }
    await store.operations.push({ jobs: [newJob({ data: text }), newJob({ data: bytes })] })
    const [a, b] = (await claim(store)).jobs
    assert.ok(a?.data.body === text.body, 'the text is the same')
    assert.equal(Buffer.compare(bytesOf(b?.data), bytesOf(bytes)), 0)
    assert.ok(a && b)
    await store.operations.complete({
      queue: 'q',
      items: [
        { ...a, result: bytes },
        { ...b, result: text },
      ],
    })
    const [first, second] = await store.operations.find({ ids: [a.id, b.id] })
    assert.equal(Buffer.compare(bytesOf(first?.result), bytesOf(bytes)), 0)
    assert.ok(second?.result?.body === text.body, 'the result is the same')
  },

  'a mebibyte in an update and in a restored job': async (store) => {
    const text: Encoded = { encoding: 'json', body: `"${'é'.repeat(MIB / 2)}"` }
    const bytes: Encoded = { encoding: 'bytes', body: Uint8Array.from({ length: MIB }, (_, i) => (i * 31) % 256) }
    const ended = { state: 'done', finishedAt: Date.now() } as const
    const [job, back] = [newJob(), recordOf({ ...ended, data: text, progress: bytes, result: text })]
    await store.operations.push({ jobs: [job] })
    assert.deepEqual(await store.operations.update({ items: [{ id: job.id, data: bytes }] }), ['updated'])
    assert.deepEqual(await store.operations.restore({ records: [back] }), ['restored'])
    const [changed, restored] = await store.operations.find({ ids: [job.id, back.id] })
    assert.equal(Buffer.compare(bytesOf(changed?.data), bytesOf(bytes)), 0)
    assert.ok(restored?.data.body === text.body && restored.result?.body === text.body, 'the text is the same')
    assert.equal(Buffer.compare(bytesOf(restored.progress), bytesOf(bytes)), 0)
  },

  'every byte there is, also out of a shared buffer': async (store) => {
    const pool = Uint8Array.from({ length: 300 }, (_, i) => i % 256)
    const bodies = [pool.subarray(10, 266), Buffer.from(pool.buffer, 20, 7), new Uint8Array(0)]
    for (const encoding of ['bytes', 'msgpack'] as const) {
      for (const body of bodies) {
        const { id } = await running(store, { data: { encoding, body } })
        const [record] = await store.operations.find({ ids: [id] })
        assert.equal(record?.data.encoding, encoding)
        assert.equal(Buffer.compare(bytesOf(record.data), body), 0)
      }
    }
  },

  'strings that break careless stores': async (store) => {
    const job = newJob({
      key: WEIRD,
      group: `${'é'.repeat(127)}e`,
      trace: WEIRD,
      data: { encoding: 'json', body: JSON.stringify({ [WEIRD]: '\0\uD800' }) },
    })
    const long = newJob({ key: `${'\u{1F600}'.repeat(63)}abc` })
    const proto = newJob({ key: '__proto__', group: 'constructor' })
    await store.operations.push({ jobs: [job, long, proto] })
    assert.deepEqual(
      await store.operations.push({
        jobs: [newJob({ key: WEIRD }), newJob({ key: long.key }), newJob({ key: '__proto__' })],
      }),
      [
        { status: 'existing', id: job.id },
        { status: 'existing', id: long.id },
        { status: 'existing', id: proto.id },
      ],
    )
    const claimed = first((await claim(store, { worker: WEIRD })).jobs)
    const { key, group, trace, data } = job
    assert.deepEqual(
      { key: claimed.key, group: claimed.group, trace: claimed.trace, data: claimed.data },
      { key, group, trace, data },
    )
    const error = { code: 'HandlerFailed', name: WEIRD, message: `${WEIRD}\0 after NUL`, stack: WEIRD.repeat(50) }
    await store.operations.fail({ queue: 'q', items: [{ ...claimed, error, delay: null }] })
    const [record] = await store.operations.find({ ids: [job.id] })
    assert.deepEqual(record?.error, error)
    assert.equal(record.worker, WEIRD)
  },

  'queues whose names look like something else': async (store) => {
    for (const queue of ['constructor', 'toString', 'A', 'a', 'a:b', 'a/b', 'a.b', '0', `q${'x'.repeat(127)}`]) {
      const job = newJob({ queue })
      await store.operations.push({ jobs: [job] })
      assert.deepEqual(
        (await claim(store, { queue })).jobs.map(({ id }) => id),
        [job.id],
        queue,
      )
    }
    assert.equal((await store.operations.stats({})).length, 9)
  },

  'times far away': async (store) => {
    const runAt = Date.UTC(9999, 11, 31)
    const job = newJob({ runAt, timeout: 365 * 86_400_000 })
    await store.operations.push({ jobs: [job] })
    const [record] = await store.operations.find({ ids: [job.id] })
    assert.equal(record?.state, 'scheduled')
    assert.equal(record.dueAt, runAt)
    assert.equal(record.timeout, 365 * 86_400_000)
  },

  'an error without a stack comes back without one': async (store) => {
    const hold = await running(store)
    const error = { code: 'GaveUp', name: 'GiveUp', message: '' }
    await store.operations.fail({ queue: 'q', items: [{ ...hold, error, delay: null }] })
    assert.deepEqual((await store.operations.find({ ids: [hold.id] }))[0]?.error, error)
  },

  'changing what was handed in changes nothing': async (store) => {
    const bytes = Uint8Array.of(1, 2, 3)
    const data: Encoded = { encoding: 'bytes', body: bytes }
    const job = newJob({ data, key: 'k' })
    await store.operations.push({ jobs: [job] })
    bytes.fill(9)
    data.encoding = 'msgpack'
    job.key = 'other'
    job.priority = 0
    const claimed = first((await claim(store)).jobs)
    assert.deepEqual([...bytesOf(claimed.data)], [1, 2, 3])
    assert.equal(claimed.data.encoding, 'bytes')
    assert.equal(claimed.key, 'k')
    assert.equal(claimed.priority, 4)

    const progress = Uint8Array.of(4)
    const result = Uint8Array.of(5)
    await store.operations.extend({
      queue: 'q',
      lease: 1_000,
      items: [{ ...claimed, progress: { encoding: 'bytes', body: progress } }],
    })
    await store.operations.complete({
      queue: 'q',
      items: [{ ...claimed, result: { encoding: 'bytes', body: result } }],
    })
    progress.fill(9)
    result.fill(9)
    const [record] = await store.operations.find({ ids: [claimed.id] })
    assert.deepEqual([...bytesOf(record?.progress)], [4])
    assert.deepEqual([...bytesOf(record?.result)], [5])
  },

  'changing what was handed out changes nothing': async (store) => {
    const job = newJob({ data: { encoding: 'bytes', body: Uint8Array.of(1, 2, 3) } })
    await store.operations.push({ jobs: [job] })
    const claimed = first((await claim(store)).jobs)
    const { id, fence } = claimed
    bytesOf(claimed.data).fill(9)
    claimed.fence = 99
    claimed.attempts = 1
    await store.operations.fail({
      queue: 'q',
      items: [{ id, fence, error: { code: 'HandlerFailed', name: 'E', message: 'm' }, delay: 0 }],
    })
    const record = first(await store.operations.find({ ids: [id] }))
    assert.ok(record?.error)
    bytesOf(record.data).fill(9)
    record.error.message = 'changed'
    record.state = 'done'
    const again = first(await store.operations.find({ ids: [id] }))
    assert.deepEqual([...bytesOf(again?.data)], [1, 2, 3])
    assert.equal(again?.error?.message, 'm')
    assert.equal(again.state, 'waiting')
    assert.equal(again.attempts, 3)
  },

  'changing recorded or read histograms changes nothing': async (store) => {
    needs(store, 'histograms', 'this check')
    await store.operations.push({ jobs: [newJob()] })
    const slice = { queue: 'q', priority: 4, metric: 'run' as const, buckets: { 1: 1 } }
    await store.operations.record({ slices: [slice] })
    slice.buckets[1] = 50
    const read = async () => first(first(await store.operations.stats({ queue: 'q', minutes: 5 })).histograms).buckets
    const buckets = await read()
    buckets[1] = 70
    assert.deepEqual(await read(), { 1: 1 })
  },
})
