/** One of 100 items is refused by the store for good: by a trigger, an encoding, a limit of the server. 99 go through, the one is told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMillpondError, type JobInfo, type Millpond } from '../../src/index.ts'
import { isDeep } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { PLACES } from './refusing.ts'

const COUNT = 100
const BAD = 57

/** Undefined also while the connection is made anew: Redis ends it at each refusal. */
const found = (pond: Millpond, id: string): Promise<JobInfo | undefined> =>
  pond.job(id).catch((error: unknown) => {
    if (isMillpondError(error, 'StoreUnavailable')) return undefined
    throw error
  })

const inState = async (pond: Millpond, id: string, state: string): Promise<JobInfo> => {
  let job: JobInfo | undefined
  const isThere = async () => {
    job = await found(pond, id)
    return job?.state === state
  }
  await until(isThere, `${id} is ${state}`)
  return job as JobInfo
}

/** 100 jobs with numbers as data. */
async function pushed(pond: Millpond, attempts = 10): Promise<string[]> {
  const numbers = Array.from({ length: COUNT }, (_, n) => n)
  return (await pond.queue('work').pushMany(numbers, { attempts })).map(({ id }) => id)
}

/** All are in the state but for the bad one, which it gives. */
async function othersEnd(pond: Millpond, ids: readonly string[], state: string): Promise<string> {
  const others = ids.filter((_, n) => n !== BAD)
  await until(async () => {
    const jobs = await Promise.all(others.map((id) => found(pond, id)))
    return jobs.every((job) => job?.state === state)
  }, `99 are ${state}`)
  return ids[BAD] as string
}

const isAscii = (text: string): boolean => /^[ -~]*$/.test(text)

for (const [name, { skip, place }] of Object.entries(PLACES)) {
  test(`${name}: a push`, { skip }, async (t) => {
    const given = await place(t)
    if (given === undefined) return
    const { pond, bad, code } = given
    const queue = pond.queue('q')
    const pushes = Array.from({ length: COUNT }, (_, n) => queue.push({ n, text: n === BAD ? bad : '' }))
    const settled = await Promise.allSettled(pushes)
    const failed = settled.flatMap((one, n) => (one.status === 'rejected' ? { n, reason: one.reason } : []))
    assert.deepEqual(
      failed.map(({ n, reason }) => [n, reason.code, reason.retryable]),
      [[BAD, code, false]],
    )
    const many = Array.from({ length: COUNT }, (_, n) => ({ n, text: n === BAD ? bad : '' }))
    await assert.rejects(pond.queue('many').pushMany(many), (error) => {
      return isMillpondError(error, code) && error.pushed === BAD
    })
    assert.equal((await pond.queue('many').jobs('waiting', { limit: 1000 })).length, BAD)
  })

  test(`${name}: a result`, { skip }, async (t) => {
    const given = await place(t)
    if (given === undefined) return
    const { pond, bad, code } = given
    pond.on('error', () => {})
    pond.on('dead', () => {})
    const ids = await pushed(pond)
    pond.queue<number>('work').work(({ data }) => (data === BAD ? bad : 'ok'), { concurrency: COUNT })
    const job = await inState(pond, await othersEnd(pond, ids, 'done'), 'dead')
    assert.equal(job.error?.code, code)
    assert.ok(isAscii(job.error.message) && /result/.test(job.error.message), job.error.message)
    assert.equal(job.attempt, 1)
  })

  // Redis ends the connection at each refusal.
  const isSlow = name.startsWith('Redis') && !isDeep
  test(`${name}: progress`, { skip: isSlow ? 'it takes ten seconds: in npm run test:deep' : skip }, async (t) => {
    const given = await place(t)
    if (given === undefined) return
    const { pond, bad, code } = given
    const codes: string[] = []
    pond.on('error', (error) => isMillpondError(error) && codes.push(error.code))
    const ids = await pushed(pond)
    const seen: (string | undefined)[] = []
    pond.queue<number>('work').work(
      async ({ data, id }, ctx) => {
        ctx.progress(data === BAD ? bad : 'half')
        // Until the report has gone through, or its mark has.
        await until(async () => {
          const job = await pond.job(id)
          return job?.progress !== undefined || (job?.log.length ?? 0) > 0
        })
        if (data === BAD) seen.push((await pond.job(id))?.log[0]?.message)
      },
      { concurrency: COUNT },
    )
    await inState(pond, await othersEnd(pond, ids, 'done'), 'done')
    assert.equal(seen.length, 1)
    assert.match(seen[0] ?? '', /left out/)
    // Extensions may overlap.
    assert.deepEqual([...new Set(codes)], [code])
  })

  test(`${name}: an error`, { skip }, async (t) => {
    const given = await place(t)
    if (given === undefined || !given.isShort) return t.skip('its limit is longer than an error')
    const { pond, bad, code } = given
    for (const event of ['error', 'dead', 'failed'] as const) pond.on(event, () => {})
    const ids = await pushed(pond, 1)
    pond.queue<number>('work').work(
      ({ data }) => {
        throw new Error(data === BAD ? bad : 'no')
      },
      { concurrency: COUNT },
    )
    const job = await inState(pond, await othersEnd(pond, ids, 'dead'), 'dead')
    assert.equal(job.error?.code, code)
    assert.ok(isAscii(job.error.message) && /error of this attempt/.test(job.error.message), job.error.message)
  })

  for (const kind of ['complete', 'release'] as const) {
    test(`${name}: a line of the log of a ${kind}`, { skip }, async (t) => {
      const given = await place(t)
      if (given === undefined || !given.isShort) return t.skip('its limit is longer than a line')
      const { pond, bad } = given
      pond.on('error', () => {})
      const ids = await pushed(pond)
      const released = new Set<string>()
      pond.queue<number>('work').work(
        ({ data, id }, ctx) => {
          if (released.has(id)) return
          released.add(id)
          ctx.log(data === BAD ? bad : 'fine')
          if (kind === 'release') throw ctx.rateLimited(1)
        },
        { concurrency: COUNT },
      )
      const job = await inState(pond, await othersEnd(pond, ids, 'done'), 'done')
      assert.match(job.log[0]?.message ?? '', /left out/)
      assert.equal(job.log.length, 1)
      assert.equal((await pond.job(ids[0] as string))?.log[0]?.message, 'fine')
    })
  }
}
