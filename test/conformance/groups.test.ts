/** Groups that come once: a store forgets them, whatever else waits in their queue. */

import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { ClaimedJob, NewJob } from '../../src/values/jobs/records.ts'
import { depth } from '../support/depth.ts'
import { newJob } from '../support/jobs.ts'
import { claim, conformance, first } from './suite.ts'

/** More than a claim and a sweep take at once. */
const GROUPS = depth(1_200, 5_000)

const inGroups = (): NewJob[] => Array.from({ length: GROUPS }, (_, at) => newJob({ group: `once-${at}` }))

async function pushAll(store: Store, jobs: readonly NewJob[]): Promise<void> {
  for (let at = 0; at < jobs.length; at += 500) await store.operations.push({ jobs: jobs.slice(at, at + 500) })
}

/** The groups of the jobs that claims bring, until one brings none, in the order of their starts. Completes all of them. */
async function drain(store: Store): Promise<(string | null)[]> {
  const groups: (string | null)[] = []
  for (;;) {
    const { jobs, retryAfter } = await claim(store)
    if (jobs.length === 0 && retryAfter !== 0) return groups
    groups.push(...jobs.map(({ group }) => group))
    await store.operations.complete({ queue: 'q', items: jobs.map(({ id, fence }) => ({ id, fence, result: null })) })
  }
}

/** Sweeps until there is no more to do. @returns how many sweeps that took */
async function sweepAll(store: Store): Promise<number> {
  for (let sweeps = 1; ; sweeps++) if (!(await store.operations.sweep({ limit: 1_000 })).more) return sweeps
}

/**
 * A job of each group beside one of `rest`, whose virtual time is ahead of the queue's as that of the others was. Its job is the
 * oldest, so it starts before all groups that are remembered, and after those that were forgotten.
 */
async function remembered(store: Store): Promise<number> {
  await pushAll(store, inGroups())
  // A claim may look at some of the groups only. These start nothing, and go on until all groups were looked at.
  while ((await claim(store, { minPriority: 9 })).retryAfter === 0);
  const groups = await drain(store)
  assert.equal(groups.length, GROUPS + 1)
  return GROUPS - groups.indexOf('rest')
}

/** All groups come and go beside a backlog of another one. @returns the claim behind which that waits */
async function comeOnce(store: Store): Promise<ClaimedJob> {
  await store.operations.configure({ queue: 'q', grouped: true, keepDone: 0 })
  await store.operations.limitGroup?.({ queue: 'q', group: 'rest', limits: { running: 1, rate: null, weight: 1 } })
  await store.operations.push({ jobs: [newJob({ group: 'rest' }), newJob({ group: 'rest' })] })
  const hold = first((await claim(store)).jobs)
  await pushAll(store, inGroups())
  assert.equal((await drain(store)).length, GROUPS)
  return hold
}

conformance('many groups', {
  'are listed by pages, each once, before any claim and after': async (store) => {
    await store.operations.configure({ queue: 'q', groupRunning: 1 })
    const jobs = inGroups()
    await pushAll(store, jobs)
    const listed = async () => {
      const names: string[] = []
      for (let after: string | undefined; ; after = names.at(-1)) {
        const page = await store.operations.groups({ queue: 'q', limit: 700, ...(after !== undefined && { after }) })
        if (page.length === 0) return names
        names.push(...page.map(({ group }) => group))
      }
    }
    const all = jobs.map(({ group }) => group ?? '').sort()
    assert.deepEqual(await listed(), all)
    await claim(store, { limit: 100 })
    assert.deepEqual(await listed(), all)
  },

  'are counted by what holds them back, as claims have found them': async (store) => {
    if (store.capabilities.spill) throw new MillpondError('NotSupported', 'groups take turns over the jobs in memory')
    await store.operations.configure({ queue: 'q', groupRunning: 1 })
    await pushAll(store, [...inGroups(), ...inGroups()])
    const held: ClaimedJob[] = []
    while (held.length < GROUPS) held.push(...(await claim(store, { limit: 500 })).jobs)
    // Nothing starts: it looks at what happened.
    while ((await claim(store)).retryAfter === 0);
    const stopped = async () => (await store.operations.stats({ queue: 'q' }))[0]?.groupsAtLimit
    assert.equal(await stopped(), GROUPS)
    await store.operations.complete({ queue: 'q', items: held.slice(0, 10).map((one) => ({ ...one, result: null })) })
    assert.equal(await stopped(), GROUPS - 10)
    await store.operations.configure({ queue: 'q', groupRunning: 2 })
    while ((await claim(store, { minPriority: 9 })).retryAfter === 0);
    assert.equal(await stopped(), 0)
  },
})

conformance('groups that come once', {
  'are forgotten while another group has a backlog': async (store, clock) => {
    const hold = await comeOnce(store)
    clock.now += 10_000
    assert.ok(
      (await sweepAll(store)) > GROUPS / 1_000,
      'a sweep forgets a thousand groups at most, and says that there are more',
    )
    await store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] })
    assert.equal(await remembered(store), 0)
  },

  'are kept for a while after their last start': async (store, clock) => {
    const hold = await comeOnce(store)
    clock.now += 9_999
    await sweepAll(store)
    await store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] })
    assert.equal(await remembered(store), GROUPS)
  },
  'are forgotten where their next job is cancelled before a claim comes to it': async (store, clock) => {
    const hold = await comeOnce(store)
    const jobs = inGroups()
    await pushAll(store, jobs)
    await store.operations.cancel({ ids: jobs.map(({ id }) => id) })
    clock.now += 10_000
    await sweepAll(store)
    while ((await claim(store)).retryAfter === 0);
    clock.now += 10_000
    await sweepAll(store)
    await store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] })
    assert.equal(await remembered(store), 0)
  },
})
