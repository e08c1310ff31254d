/** One job that cannot be read, stored by another program or an older version, fails by itself. It spoils no claim, list or look-up with others in it. */
import assert from 'node:assert/strict'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { MAX_PAYLOAD } from '../../src/values/encoding/encoding.ts'
import type { Encoded, NewJob } from '../../src/values/jobs/records.ts'
import { newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { onEachStore, refused } from './suite.ts'

const stored = (data: Encoded) => newJob({ attempts: 1, data })
const json = (body: string): NewJob => stored({ encoding: 'json', body })
const half = 'caf\ud83d'

onEachStore('a rogue job', {
  'dies with the code, among others that are done': async ({ url, shared, open }) => {
    const store = await openStore(url, {})
    const pond = shared ? await open() : new Millpond(store, MAX_PAYLOAD)
    const queue = pond.queue<unknown>('q')
    const rogues = [
      json('"caf\\ud83d"'),
      json('{"a":["\\udc00"]}'),
      json('{"a":'),
      stored({ encoding: 'msgpack', body: new Uint8Array([0xc1]) }),
    ]
    const good = [json('1'), json('"\\ud83c\\udf0a"'), json('"\\\\ud83d"')]
    await store.operations.push({ jobs: [...rogues, ...good] })
    const listed = await queue.jobs('waiting')
    assert.deepEqual(
      listed.map(({ undecodable }) => undecodable.length),
      [1, 1, 1, 1, 0, 0, 0],
    )
    const seen: unknown[] = []
    queue.work((job) => void seen.push(job.data))
    await until(async () => {
      const { counts } = await queue.stats()
      return counts.dead === rogues.length && counts.done === good.length
    })
    assert.deepEqual(seen, [1, '🌊', '\\ud83d'])
    for (const { id } of rogues) assert.equal((await pond.job(id))?.error?.code, 'PayloadNotDecodable')
    await (shared ? store : pond).close()
  },

  'half of a surrogate pair is refused in data, with the path to it, and in key and group': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    for (const [data, path] of [
      [half, ''],
      [{ a: [1, { b: half }] }, 'a.1.b'],
      [[new Uint8Array(1), half], '1'],
    ] as const) {
      const isRefused = (error: unknown) => {
        assert.ok(isMillpondError(error, 'PayloadNotEncodable'), String(error))
        assert.equal(error.issues?.[0]?.path, path)
        return true
      }
      await assert.rejects(queue.push(data), isRefused)
      await assert.rejects(queue.pushMany([1, data]), isRefused)
    }
    await refused(queue.push(1, { key: half }), 'InvalidName')
    await refused(queue.push(1, { group: half }), 'InvalidName')
    assert.equal((await queue.stats()).counts.waiting, 0)
  },

  'half of a pair in a result or in progress fails that job; in the text of an error it is mended': async ({
    open,
  }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    queue.work(({ data }, context) => {
      if (data === 'result') return [half]
      if (data === 'progress') context.progress({ at: half })
      if (data === 'error') throw Object.assign(new Error(half), { name: half })
      return data
    })
    const ids: Record<string, string> = {}
    for (const data of ['result', 'progress', 'error', 'fine']) ids[data] = (await queue.push(data)).id
    assert.equal(await pond.result(ids.fine ?? ''), 'fine')
    const errorOf = async (name: string) => {
      const id = ids[name] ?? ''
      await until(async () => (await pond.job(id))?.state === 'dead')
      return (await pond.job(id))?.error
    }
    assert.equal((await errorOf('result'))?.code, 'PayloadNotEncodable')
    assert.equal((await errorOf('progress'))?.code, 'PayloadNotEncodable')
    const { name, message } = (await errorOf('error')) ?? {}
    assert.deepEqual([name, message], ['caf\ufffd', 'caf\ufffd'])
  },
})
