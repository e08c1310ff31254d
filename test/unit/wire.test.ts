/** What other languages read and write beside the operations: `contract/vectors/wire/`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobKey } from '../../src/coalesce/shared-calls.ts'
import * as postgres from '../../src/stores/postgres/wire.ts'
import { bellIn } from '../../src/stores/redis/notifier.ts'
import { claimReply } from '../../src/stores/redis/operations/claim.ts'
import * as redis from '../../src/stores/redis/wire.ts'
import { claimedJobs } from '../../src/stores/sqlite/wire.ts'
import { storedErrorFromJson } from '../../src/stores/stored-error.ts'
import { Job } from '../../src/values/jobs/job.ts'
import type { Encoded } from '../../src/values/jobs/records.ts'
import { derivedId, keyOf } from '../../src/web/idempotency.ts'
import { Refusal } from '../../src/web/problem.ts'
import { webhookRequest } from '../../src/webhook/delivery.ts'
import { retryAfter } from '../../src/webhook/retry-after.ts'
import { signingKey } from '../../src/webhook/signature.ts'
import { revive, vectors } from './vectors.ts'

type Body = { encoding: Encoded['encoding'] } & ({ body: string } | { base64: string })
interface Case {
  about: string
  hex: string
}
interface Bodied {
  data: Body
}

const bytes = (hex: string) => Buffer.from(hex, 'hex')
const bodyOf = (given: Body): Encoded =>
  'body' in given
    ? { encoding: given.encoding, body: given.body }
    : { encoding: given.encoding, body: new Uint8Array(Buffer.from(given.base64, 'base64')) }
const withBody = <Given extends Bodied>({ data, ...given }: Given) => ({ ...given, data: bodyOf(data) })

const ofRedis = vectors<{
  ids: { id: string; hex: string }[]
  bodies: (Case & { body: Body })[]
  heads: (Case & { head: unknown[] })[]
  records: (Case & { record: Bodied })[]
  errors: (Case & { error: Parameters<typeof redis.errorBytes>[0] })[]
  claims: { about: string; answer: (number | { hex: string })[]; jobs: Bodied[] }[]
  bells: (Case & { bell: unknown })[]
}>('wire/redis')

test('Redis: ids', () => {
  for (const { id, hex } of ofRedis.ids) {
    assert.equal(redis.idBytes(id).toString('hex'), hex)
    assert.equal(redis.idText(bytes(hex)), id)
  }
})

for (const { about, body, hex } of ofRedis.bodies) {
  test(`Redis: a body: ${about}`, () => {
    assert.deepEqual(Buffer.from(redis.encodedBytes(bodyOf(body))), bytes(hex))
    assert.deepEqual(redis.encodedIn(bytes(hex)), bodyOf(body))
  })
}

for (const { about, head, hex } of ofRedis.heads) {
  test(`Redis: a head: ${about}`, () => {
    assert.deepEqual(redis.listBefore(redis.pack(head)).list, head)
    assert.deepEqual(redis.listBefore(bytes(hex)).list, head)
  })
}

for (const { about, record, hex } of ofRedis.records) {
  test(`Redis: a record: ${about}`, () => {
    assert.partialDeepStrictEqual(redis.recordIn(bytes(hex)), withBody(record))
  })
}

for (const { about, error, hex } of ofRedis.errors) {
  test(`Redis: an error: ${about}`, () => {
    assert.deepEqual(redis.storedErrorIn(bytes(hex)), error)
    assert.deepEqual(redis.storedErrorIn(redis.errorBytes(error)), error)
  })
}

for (const { about, answer, jobs } of ofRedis.claims) {
  test(`Redis: the answer of a claim: ${about}`, () => {
    const claimed = claimReply(answer.map((part) => (typeof part === 'number' ? part : bytes(part.hex))))
    assert.equal(claimed.jobs.length, jobs.length)
    assert.partialDeepStrictEqual(claimed.jobs, jobs.map(withBody))
  })
}

for (const { about, bell, hex } of ofRedis.bells) {
  test(`Redis: a bell: ${about}`, () => assert.deepEqual(bellIn(bytes(hex)), bell))
}

const ofPostgres = vectors<{
  bodies: { about: string; body: Body; text: string }[]
  claims: { about: string; list: postgres.ClaimedList; job: Bodied }[]
  pushed: { answer: string; outcome: unknown }[]
  held: { about: string; claims: number; answer: number[] | null; outcomes: string[] }[]
  arrays: { about: string; values: (string | null)[]; text: string }[]
  shown: {
    about: string
    claims: { id: string; key: string | null; fence: number }[]
    fences: string | null
    shown: boolean[]
  }[]
}>('wire/postgres')

for (const { about, body, text } of ofPostgres.bodies) {
  test(`PostgreSQL: a body: ${about}`, () => {
    assert.equal(postgres.tagged(bodyOf(body)), text)
    assert.deepEqual(postgres.untagged(text), bodyOf(body))
  })
}

for (const { about, list, job } of ofPostgres.claims) {
  test(`PostgreSQL: a claimed job: ${about}`, () => assert.deepEqual(postgres.claimedFrom(list), withBody(job)))
}

test('PostgreSQL: answers and arrays', () => {
  for (const { answer, outcome } of ofPostgres.pushed) assert.deepEqual(postgres.outcomeFrom(answer), outcome)
  for (const { about, claims, answer, outcomes } of ofPostgres.held) {
    const holds = Array.from({ length: claims }, () => ({ id: '', fence: 1 }))
    assert.deepEqual(postgres.holdOutcomes(holds, answer), outcomes, about)
  }
  for (const { about, values, text } of ofPostgres.arrays) assert.equal(postgres.textArray(values), text, about)
})

for (const { about, claims, fences, shown } of ofPostgres.shown) {
  test(`PostgreSQL: what a replica shows: ${about}`, () => assert.deepEqual(postgres.shownJobs(claims, fences), shown))
}

const ofSqlite = vectors<{
  claims: { about: string; row: { job: string; data: { text: string } | { base64: string } }; job: Bodied }[]
  errors: { text: string; error: unknown }[]
}>('wire/sqlite')

for (const { about, row, job } of ofSqlite.claims) {
  test(`SQLite: a claimed job: ${about}`, () => {
    const data = 'text' in row.data ? row.data.text : new Uint8Array(Buffer.from(row.data.base64, 'base64'))
    assert.deepEqual(claimedJobs({ jobs: `[${row.job}]`, data: [data] }), [withBody(job)])
  })
}

test('SQLite: errors', () => {
  for (const { text, error } of ofSqlite.errors) assert.deepEqual(storedErrorFromJson(text), error)
})

const idempotency = vectors<{
  ids: { queue: string; scope: string; key: string; id: string }[]
  headers: { header: string; key: string | null }[]
}>('wire/idempotency')

test('the id of a job that is made of an Idempotency-Key', () => {
  for (const { queue, scope, key, id } of idempotency.ids) assert.equal(derivedId(queue, scope, key), id)
})

for (const { header, key } of idempotency.headers) {
  test(`Idempotency-Key: ${header.slice(0, 20)}`, () => {
    const request = new Request('http://localhost/', { headers: { 'idempotency-key': header } })
    if (key === null) assert.throws(() => keyOf(request), Refusal)
    else assert.equal(keyOf(request), key)
  })
}

interface WebhookJob {
  id: string
  queue: string
  attempt: number
  attempts: number
  pushedAt: number
  trace: string | null
  data: unknown
}
const webhook = vectors<{
  requests: { about: string; secrets: string[]; seconds: number; job: WebhookJob; body: string; headers: object }[]
  badSecrets: string[]
  retryAfter: { now: number; header: string; ms: number | null }[]
}>('wire/webhook')

for (const { about, secrets, seconds, job, body, headers } of webhook.requests) {
  test(`a webhook's request: ${about}`, () => {
    const keys = secrets.map((secret) => signingKey(secret) ?? assert.fail('a secret is refused'))
    const claimed = { ...job, fence: 1, priority: 4, key: null, group: null, timeout: null, dueAt: job.pushedAt }
    assert.deepEqual(webhookRequest(keys, new Job(job.queue, claimed, revive(job.data)), seconds), { headers, body })
  })
}

test("a webhook's secrets and Retry-After", () => {
  for (const secret of webhook.badSecrets) assert.equal(signingKey(secret), undefined)
  for (const { now, header, ms } of webhook.retryAfter) assert.equal(retryAfter(header, now) ?? null, ms, header)
})

const coalesce = vectors<{ keys: { about: string; callKey: unknown; key: string }[] }>('wire/coalesce')

for (const { about, callKey, key } of coalesce.keys) {
  test(`the job's key of a shared call: ${about}`, () => assert.equal(jobKey(String(revive(callKey))), key))
}
