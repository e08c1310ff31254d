/** Claims that wait: in line, woken by bells, given back when the worker has gone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Claims } from '../../src/serve/claims.ts'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import type { ClaimRequest } from '../../src/values/jobs/records.ts'
import { WorkerRegistry } from '../../src/worker/registry.ts'
import { newJob } from '../support/jobs.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { until } from '../support/until.ts'

const job = (data: unknown) => newJob({ attempts: 10, data: { encoding: 'json', body: JSON.stringify(data) } })

const request = (limit = 1): ClaimRequest => ({ queue: 'q', worker: 'w', limit, lease: 60_000 })
const never = () => new AbortController().signal

/** A memory store that counts its claims, and that a check may meddle with. */
async function atStore(
  check: (claims: Claims, store: Store, counts: { claims: number }, meddling: Meddling) => Promise<void>,
): Promise<void> {
  const counts = { claims: 0 }
  const counted = meddled(await openStore('memory:', {}), {
    claim(asked, next) {
      counts.claims++
      return next(asked)
    },
  })
  const meddling: Meddling = {}
  const store = meddled(counted, meddling)
  const registry = new WorkerRegistry(store)
  const claims = new Claims(store, registry, () => {})
  try {
    await check(claims, store, counts, meddling)
    assert.equal(claims.waiting, 0)
  } finally {
    claims.stop()
    await registry.close()
    await store.close()
  }
}

const claimsTest = (title: string, check: Parameters<typeof atStore>[0]) =>
  test(title, { timeout: 30_000 }, () => atStore(check))

claimsTest('without a wait the answer comes at once, empty or not', async (claims, store) => {
  assert.deepEqual((await claims.claim(request(), 0, never())).jobs, [])
  await store.operations.push({ jobs: [job(1)] })
  assert.equal((await claims.claim(request(), 0, never())).jobs.length, 1)
})

claimsTest(
  'those who do not wait go at once, past many who do, and those who leave leave nothing',
  async (claims, store) => {
    const leaving = new AbortController()
    const all = Array.from({ length: 1000 }, () => claims.claim(request(), 20_000, leaving.signal))
    for (let come = 0; come < 100; come++) assert.deepEqual((await claims.claim(request(), 0, never())).jobs, [])
    assert.equal(claims.waiting, 1000)
    leaving.abort()
    await Promise.all(all)
    assert.equal(claims.waiting, 0)
    await store.operations.push({ jobs: [job(1)] })
    assert.equal((await claims.claim(request(), 0, never())).jobs.length, 1)
  },
)

claimsTest(
  'many who wait cost few calls when one job comes, and each job goes to one of them',
  async (claims, store, counts) => {
    const all = Array.from({ length: 100 }, () => claims.claim(request(), 20_000, never()))
    await until(() => claims.waiting === 100 && counts.claims > 0)
    const before = counts.claims
    await store.operations.push({ jobs: [job(0)] })
    await until(() => claims.waiting === 99)
    assert.ok(counts.claims - before <= 10, String(counts.claims - before))
    await store.operations.push({ jobs: Array.from({ length: 99 }, (_, index) => job(index)) })
    const ids = (await Promise.all(all)).flatMap(({ jobs }) => jobs.map(({ id }) => id))
    assert.equal(new Set(ids).size, 100)
  },
)

claimsTest('those who came first are served first', async (claims, store) => {
  const order: number[] = []
  const all = [1, 2, 3].map((place) => claims.claim(request(), 20_000, never()).then(() => order.push(place)))
  for (const place of [1, 2, 3]) {
    await store.operations.push({ jobs: [job(place)] })
    await until(() => order.length === place)
  }
  await Promise.all(all)
  assert.deepEqual(order, [1, 2, 3])
})

claimsTest('one who does not wait is not held up by those who do', async (claims, store) => {
  const patient = claims.claim(request(), 20_000, never())
  assert.deepEqual((await claims.claim(request(), 0, never())).jobs, [])
  await store.operations.push({ jobs: [job(1)] })
  assert.equal((await patient).jobs.length, 1)
})

test('those who wait for urgent jobs hold up nobody who takes any, and are woken as well', async (t) => {
  // Without polls.
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  await atStore(async (claims, store) => {
    const urgent = claims.claim({ ...request(), minPriority: 7 }, 20_000, never())
    const any = claims.claim(request(), 20_000, never())
    assert.deepEqual((await claims.claim({ ...request(), minPriority: 7 }, 0, never())).jobs, [])
    const low = job('low')
    await store.operations.push({ jobs: [low] })
    assert.equal((await any).jobs[0]?.id, low.id)
    const high = { ...job('high'), priority: 7 }
    await store.operations.push({ jobs: [high] })
    assert.equal((await urgent).jobs[0]?.id, high.id)
  })
})

test('a worker that waits is served when a rate allows the next start, not at the next poll', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  await atStore(async (claims, store, counts, meddling) => {
    meddling.claim = async (asked, next) => ({ ...(await next(asked)), retryAfter: 300 })
    await store.operations.configure({ queue: 'q', paused: true })
    const waiting = claims.claim(request(), 20_000, never())
    while (counts.claims < 1) await new Promise(setImmediate)
    await new Promise(setImmediate)
    t.mock.timers.tick(299)
    assert.equal(counts.claims, 1)
    t.mock.timers.tick(1)
    assert.equal(counts.claims, 2)
    claims.stop()
    assert.deepEqual((await waiting).jobs, [])
  })
})

claimsTest('a wait that is over, and one that is stopped, end empty', async (claims) => {
  assert.deepEqual((await claims.claim(request(), 5, never())).jobs, [])
  const waiting = claims.claim(request(), 20_000, never())
  await until(() => claims.waiting === 1)
  claims.stop()
  assert.deepEqual((await waiting).jobs, [])
  assert.deepEqual((await claims.claim(request(), 20_000, never())).jobs, [])
})

claimsTest(
  'what is claimed for a worker that has gone meanwhile is given back, and counts as no attempt',
  async (claims, store, _, meddling) => {
    const hangUp = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    meddling.claim = async (asked, next) => {
      const claimed = await next(asked)
      await promise
      return claimed
    }
    await store.operations.push({ jobs: [job(1)] })
    const lost = claims.claim(request(), 20_000, hangUp.signal)
    await until(async () => (await store.operations.stats({}))[0]?.counts.running === 1)
    hangUp.abort()
    resolve()
    assert.deepEqual((await lost).jobs, [])
    delete meddling.claim
    const [again] = (await claims.claim(request(), 0, never())).jobs
    assert.deepEqual([again?.attempt, again?.fence], [1, 2])
  },
)

claimsTest(
  'it is settled when what is under way has its answer, and what was given back is back',
  async (claims, store, _, meddling) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let told = 0
    meddling.release = async (input, next) => {
      await promise
      const outcomes = await next(input)
      told++
      return outcomes
    }
    await claims.drained()
    await store.operations.push({ jobs: [job(1)] })
    const { jobs } = await claims.claim(request(), 0, never())
    const back = claims.giveBack('q', jobs)
    const claiming = claims.claim(request(), 20_000, never())
    let settled = false
    const settling = claims.drained().then(() => {
      settled = true
    })
    await new Promise((turned) => setImmediate(turned))
    assert.equal(settled, false)
    resolve()
    await back
    assert.deepEqual([told, (await claiming).jobs.length], [1, 1])
    await settling
  },
)

claimsTest('an error of the store is told, and the next one is served', async (claims, store, _, meddling) => {
  meddling.claim = () => Promise.reject(new Error('away'))
  await assert.rejects(claims.claim(request(), 20_000, never()), /away/)
  delete meddling.claim
  await store.operations.push({ jobs: [job(1)] })
  assert.equal((await claims.claim(request(), 0, never())).jobs.length, 1)
})

claimsTest('large claims come in bites, and end at four million bytes', async (claims, store) => {
  await store.operations.push({ jobs: Array.from({ length: 25 }, (_, index) => job(index)) })
  assert.equal((await claims.claim(request(25), 0, never())).jobs.length, 25)
  await store.operations.push({ jobs: Array.from({ length: 30 }, () => job('x'.repeat(600_000))) })
  assert.equal((await claims.claim(request(30), 0, never())).jobs.length, 10)
  assert.equal((await claims.claim(request(30), 0, never())).jobs.length, 10)
})

claimsTest('jobs that are too much for one answer are given back, and cost them no attempt', async (claims, store) => {
  const body = JSON.stringify('x'.repeat(15 * 1024 * 1024))
  const large = Array.from({ length: 6 }, () => ({ ...job(1), data: { encoding: 'json', body } as const }))
  await store.operations.push({ jobs: large })
  const first = await claims.claim(request(6), 0, never())
  assert.deepEqual(
    first.jobs.map(({ id }) => id),
    large.slice(0, 4).map(({ id }) => id),
  )
  const rest = await claims.claim(request(6), 0, never())
  assert.deepEqual(
    rest.jobs.map(({ id, attempt }) => [id, attempt]),
    large.slice(4).map(({ id }) => [id, 1]),
  )
})

claimsTest('after a claim that failed, one job is asked for, then more', async (claims, store, _, meddling) => {
  await store.operations.push({ jobs: Array.from({ length: 8 }, (_, at) => job(at)) })
  const asked: number[] = []
  meddling.claim = (wanted, next) => {
    asked.push(wanted.limit)
    return asked.length === 1 ? Promise.reject(new Error('undone')) : next(wanted)
  }
  await assert.rejects(claims.claim(request(7), 0, never()))
  assert.equal((await claims.claim(request(7), 0, never())).jobs.length, 7)
  assert.deepEqual(asked, [7, 1, 2, 4])
})
