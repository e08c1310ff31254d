/** Half of a surrogate pair, and integers that a number would change: refused on every way in, and never in an answer beside other jobs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Packr } from 'msgpackr'
import { Millpond } from '../../src/pond/millpond.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { Service } from '../../src/serve/service.ts'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { checkMessagePack } from '../../src/values/encoding/plain-msgpack.ts'
import { newJob } from '../support/jobs.ts'
import { answered } from './client.ts'

type Ask = (path: string, json: string, accept?: string) => Promise<Response>

async function withService(check: (ask: Ask, store: Store) => Promise<void>): Promise<void> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const store = await openStore('memory:', {})
  const pond = new Millpond(store, LIMITS.maxPayload)
  const service = new Service({ store, pond, limits: LIMITS, tokens: [], hosts: [], onError })
  const ask: Ask = (path, body, accept = 'application/json') => {
    const headers = { 'content-type': 'application/json', accept }
    return service.handle(new Request(`http://localhost/v1${path}`, { method: 'POST', headers, body }))
  }
  try {
    await check(ask, store)
    assert.deepEqual(errors, [])
  } finally {
    await service.drained()
    await pond.close()
  }
}

/** As an older version or plain SQL may have stored it. */
const stored = (body: string) => newJob({ attempts: 1, data: { encoding: 'json', body } })

const HALF = '"caf\\ud83d"'
const BIG = '9007199254740993'

test('pushes are refused as PayloadNotEncodable, with the path, and nothing is stored', () =>
  withService(async (ask, store) => {
    for (const [path, json, at] of [
      ['/queues/q/jobs', `{"data":${HALF}}`, ''],
      ['/queues/q/jobs', `{"data":{"a":[1,${HALF}]}}`, 'a.1'],
      ['/queues/q/jobs', `{"data":{"\\ud83d":1}}`, '\ufffd'],
      ['/queues/q/batches', `{"jobs":[{"data":1},{"data":[${HALF}]}]}`, '0'],
      ['/queues/q/jobs', `{"data":{"id":${BIG}}}`, 'data.id'],
      ['/queues/q/batches', `{"jobs":[{"data":1},{"data":[${BIG}]}]}`, 'jobs.1.data.0'],
    ] as const) {
      const { status, body } = await answered(await ask(path, json))
      assert.equal(status, 422, json)
      assert.equal(body.code, 'PayloadNotEncodable')
      assert.ok(Array.isArray(body.issues))
      assert.equal(body.issues[0]?.path, at)
    }
    for (const name of ['key', 'group']) {
      const { status, body } = await answered(await ask('/queues/q/jobs', `{"data":1,"${name}":${HALF}}`))
      assert.ok(status === 400 || status === 422, String(status))
      assert.ok(body.code === 'InvalidName' || body.code === 'InvalidOption', String(body.code))
    }
    assert.equal((await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 1000 })).jobs.length, 0)
  }))

test('results and progress are refused as well, and the claim goes on', () =>
  withService(async (ask, store) => {
    await store.operations.push({ jobs: [stored('1')] })
    const [job] = (await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 60_000 })).jobs
    const { id, fence } = job ?? assert.fail()
    for (const value of [HALF, BIG]) {
      for (const [verb, member] of [
        ['complete', 'result'],
        ['extend', 'progress'],
      ]) {
        const path = `/queues/q/jobs/${id}/${verb}`
        const { status, body } = await answered(await ask(path, `{"fence":${fence},"${member}":[${value}]}`))
        assert.deepEqual([status, body.code], [422, 'PayloadNotEncodable'])
      }
    }
    assert.equal((await answered(await ask(`/queues/q/jobs/${id}/complete`, `{"fence":${fence}}`))).status, 200)
  }))

test('a job that lies in the store with one fails with the code; the others are handed out, strictly readable', () =>
  withService(async (ask, store) => {
    for (const accept of ['application/json', 'application/msgpack']) {
      const jobs = [stored('1'), stored(HALF), stored('{"a":["\\udc00"]}'), stored('"\\ud83c\\udf0a"')]
      await store.operations.push({ jobs })
      const response = await ask('/queues/q/claims', '{"limit":10}', accept)
      const bytes = new Uint8Array(await response.arrayBuffer())
      if (accept === 'application/msgpack') checkMessagePack(bytes, 20, (reason) => new Error(reason))
      else assert.doesNotMatch(new TextDecoder('utf-8', { fatal: true }).decode(bytes), /\\ud/)
      const body =
        accept === 'application/json'
          ? JSON.parse(Buffer.from(bytes).toString())
          : new Packr({ useRecords: false }).unpack(bytes)
      assert.equal(response.status, 200, JSON.stringify(body))
      assert.deepEqual(
        body.jobs.map(({ data }: { data: unknown }) => data),
        [1, '🌊'],
      )
      const [record] = await store.operations.find({ ids: [jobs[1]?.id ?? ''] })
      assert.deepEqual([record?.state, record?.error?.code], ['dead', 'PayloadNotDecodable'])
    }
  }))

test('the texts of an error are mended', () =>
  withService(async (ask, store) => {
    await store.operations.push({ jobs: [stored('1')] })
    const [job] = (await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 60_000 })).jobs
    const { id, fence } = job ?? assert.fail()
    const failure = `{"fence":${fence},"error":{"message":${HALF}},"retry":false}`
    assert.equal((await answered(await ask(`/queues/q/jobs/${id}/fail`, failure))).status, 200)
    const [record] = await store.operations.find({ ids: [id] })
    assert.equal(record?.error?.message, 'caf\ufffd')
  }))
