/** Jobs that follow another one by its key: each is moved once, runs once, and behind the job that it follows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import type { JobRecord, NewJob } from '../../src/values/jobs/records.ts'
import { stores } from '../conformance/stores.ts'
import { first } from '../conformance/suite.ts'
import { ERROR, newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const kinds = stores.filter(({ name }) => ['memory', 'sqlite', 'redis', 'postgres'].includes(name))
const memory = first(kinds)
const PAIRS = kinds.flatMap((kind) =>
  kind === memory ? [[kind, kind] as const] : [[memory, kind] as const, [kind, memory] as const],
)
const KEYED = { key: 'k', once: { follow: true } } as const

interface Ends {
  source: Store
  target: Store
}

const recordOf = async ({ operations }: Store, { id }: NewJob): Promise<JobRecord | null> =>
  first(await operations.find({ ids: [id] }))

async function claimed({ operations }: Store) {
  await operations.sweep({ limit: 100 })
  return (await operations.claim({ queue: 'q', worker: 'w', limit: 10, lease: 60_000 })).jobs
}

async function complete(store: Store, { id, fence }: { id: string; fence: number }): Promise<void> {
  assert.deepEqual(await store.operations.complete({ queue: 'q', items: [{ id, fence, result: null }] }), ['ok'])
}

/** A running job and its follower, among others. */
async function pushed(store: Store) {
  const { operations } = store
  const [runs, follows] = [newJob(KEYED), newJob(KEYED)]
  await operations.push({ jobs: [runs] })
  const held = first((await operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 60_000 })).jobs)
  await operations.push({ jobs: [newJob({ delay: 3_600_000 }), follows, newJob()] })
  // A move takes what was pushed before it began.
  const pushedAt = (await recordOf(store, follows))?.pushedAt ?? 0
  await until(() => Date.now() > pushedAt, 'the next millisecond')
  return { runs, follows, held }
}

/** What runs at the target, one after the other. */
async function drained(target: Store): Promise<string[]> {
  const ran: string[] = []
  for (let jobs = await claimed(target); jobs.length > 0; jobs = await claimed(target)) {
    for (const job of jobs) await complete(target, job)
    ran.push(...jobs.map(({ id }) => id))
  }
  return ran
}

const ENDINGS: Record<string, (store: Store, held: { id: string; fence: number }) => Promise<unknown>> = {
  'is done': complete,
  'is dead': ({ operations }, { id, fence }) =>
    operations.fail({ queue: 'q', items: [{ id, fence, error: ERROR, delay: null }] }),
  'is tried again': ({ operations }, { id, fence }) =>
    operations.fail({ queue: 'q', items: [{ id, fence, error: ERROR, delay: 0 }] }),
  'is given back': ({ operations }, { id, fence }) => operations.release({ queue: 'q', items: [{ id, fence }] }),
}

async function between(from: typeof memory, to: typeof memory, check: (ends: Ends) => Promise<void>): Promise<void> {
  const source = await from.open()
  const target = await to.open()
  try {
    await check({ source: source.store, target: target.store })
  } finally {
    await source.dispose()
    await target.dispose()
  }
}

for (const [from, to] of PAIRS) {
  const skip = from.skip || to.skip
  // What differs between stores is what becomes of a job that comes back.
  const endings = Object.entries(ENDINGS).filter(([how]) => from === to || how === 'is tried again')
  for (const [how, end] of endings) {
    test(`${from.name} to ${to.name}: a job with a follower runs during the move, and ${how}`, { skip }, () =>
      between(from, to, async ({ source, target }) => {
        const { runs, follows, held } = await pushed(source)
        let looks = 0
        const seen = around(source, (name, input, next) => {
          if (name === 'list' && 'state' in input && input.state === 'running') looks++
          return next(input)
        })
        const moving = move(seen, target)
        // Two passes over what does not run.
        await until(() => looks >= 2, 'the move to wait for the job that runs')
        assert.equal(await recordOf(target, follows), null)
        assert.equal((await recordOf(source, follows))?.follows, true)
        await end(source, held)
        const { left, remaining } = await moving
        assert.deepEqual([left, remaining], [0, 0])
        const again = how === 'is tried again' || how === 'is given back'
        assert.equal((await recordOf(target, follows))?.follows, again ? true : undefined)
        const ran = await drained(target)
        assert.deepEqual(
          ran.filter((id) => id === runs.id || id === follows.id),
          again ? [runs.id, follows.id] : [follows.id],
        )
        assert.equal(ran.length, again ? 3 : 2)
      }),
    )
  }

  test(`${from.name} to ${to.name}: a job that waits again goes before its follower`, { skip }, () =>
    between(from, to, async ({ source, target }) => {
      const { runs, follows, held } = await pushed(source)
      await source.operations.release({ queue: 'q', items: [{ id: held.id, fence: held.fence }] })
      const { moved, left, remaining } = await move(source, target)
      assert.deepEqual([moved, left, remaining], [4, 0, 0])
      const record = await recordOf(target, follows)
      assert.deepEqual([record?.state, record?.follows], ['scheduled', true])
      // A push that follows replaces the follower, as it would have at the source.
      const [outcome] = await target.operations.push({ jobs: [newJob({ ...KEYED, delay: 0 })] })
      assert.deepEqual(outcome, { status: 'replaced', id: follows.id })
      const ran = await drained(target)
      assert.deepEqual(
        ran.filter((id) => id === runs.id || id === follows.id),
        [runs.id, follows.id],
      )
    }),
  )
}

test('a follower whose job stays at the source stays with it', () =>
  between(memory, memory, async ({ source, target }) => {
    const { runs, follows, held } = await pushed(source)
    await source.operations.release({ queue: 'q', items: [{ id: held.id, fence: held.fence }] })
    const other = newJob({ key: 'k' })
    await target.operations.push({ jobs: [other] })
    const { moved, left, remaining, queues } = await move(source, target)
    assert.deepEqual([moved, left, remaining, queues[0]?.left], [2, 1, 2, { KeyTaken: 1 }])
    assert.equal((await recordOf(source, follows))?.follows, true)
    // Once that key is free, both go.
    await drained(target)
    assert.deepEqual((await move(source, target)).left, 0)
    assert.equal((await recordOf(target, follows))?.follows, true)
    // It is due when the first move lets go of it.
    await target.operations.update({ items: [{ id: runs.id, delay: 0 }] })
    assert.deepEqual(await drained(target), [runs.id, follows.id])
  }))
