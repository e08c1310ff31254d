/** What must be so after each order, whatever the order was. */

import { JOB_STATES } from '../../src/values/jobs/records.ts'
import { isSignal } from '../../src/values/jobs/step-names.ts'
import type { Arena } from './arena.ts'
import { operation, perform } from './operations.ts'
import { KEY, type World } from './world.ts'

/** Ms after which every rate, pause and delay of the races is over, and no lease is. */
const LATER = 3000
/** Ms after which every lease has ended. */
const LONG = 60_000
const ALL = 1000
/** Rounds in which a queue of so few jobs must be worked off. */
const MOST_ROUNDS = 30

/** Not where limits were changed: what runs then may go on. @param running by group */
export function overLimit({ config: { limits }, changed }: World, running: ReadonlyMap<string, number>): string[] {
  if (changed) return []
  const faults: string[] = []
  const total = [...running.values()].reduce((sum, count) => sum + count, 0)
  if (limits.running && total > limits.running) faults.push('more run than the queue may')
  const most = limits.groupRunning
  if (most && [...running].some(([group, count]) => group !== '' && count > most)) {
    faults.push('more run than a group may')
  }
  return faults
}

/** @returns what is wrong */
export async function check(arena: Arena, world: World): Promise<string[]> {
  const faults = [...world.faults]
  faults.push(...(await refusedFiringsPushNothing(arena, world)))
  faults.push(...(await countsAreRows(arena, world)))
  faults.push(...(await arena.inside(world, false)))
  faults.push(...(await keysAreHeldOnce(arena, world)))
  faults.push(...(await entriesAreKept(arena, world)))
  faults.push(...(await nobodySleepsBesideASignal(arena, world)))
  faults.push(...(await nobodySleepsBesideWork(arena, world)))
  faults.push(...(await everyGroupGetsItsTurn(arena, world)))
  faults.push(...(await everythingIsWorkedOff(arena, world)))
  return [...new Set(faults)]
}

async function refusedFiringsPushNothing({ store }: Arena, { unfired }: World): Promise<string[]> {
  const found = await store.operations.find({ ids: unfired })
  return found.some((job) => job !== null) ? ['a firing that was refused has pushed its job'] : []
}

async function countsAreRows(arena: Arena, { queue }: World): Promise<string[]> {
  const [stats] = await arena.store.operations.stats({ queue })
  const rows = await arena.rows(queue)
  return JOB_STATES.flatMap((state) =>
    (stats?.counts[state] ?? 0) === (rows.get(state) ?? 0)
      ? []
      : [`the count of ${state} jobs is not that of the rows`],
  )
}

/** One live job has the key, and one follows it at most. */
async function keysAreHeldOnce({ store }: Arena, { queue }: World): Promise<string[]> {
  const states = ['scheduled', 'waiting', 'running'] as const
  const pages = await Promise.all(states.map((state) => store.operations.list({ queue, state, limit: ALL })))
  const keyed = pages.flatMap(({ jobs }) => jobs).filter(({ key }) => key === KEY)
  const followers = keyed.filter(({ follows }) => follows)
  const faults: string[] = []
  if (keyed.length - followers.length > 1) faults.push('a key is held twice')
  if (followers.length > 1) faults.push('a key is followed twice')
  if (followers.length > 0 && keyed.length === followers.length) faults.push('a follower follows nothing')
  return faults
}

/** Of a job that is gone, its journal is gone as well. */
async function entriesAreKept({ store }: Arena, { entries, forgot }: World): Promise<string[]> {
  if (entries.length === 0) return []
  const pages = await store.operations.entries({ items: entries.map(({ id }) => ({ id, after: 0 })) })
  const isLost = pages.some((page, at) => {
    const name = entries[at]?.name ?? ''
    if (page === null || (forgot && !isSignal(name))) return false
    return page.entries.filter((entry) => entry.name === name).length !== 1
  })
  const isOutOfOrder = pages.some((page) => page?.entries.some(({ n }, at) => n <= (page.entries[at - 1]?.n ?? 0)))
  return [
    ...(isLost ? ['an entry that was acknowledged is not there once'] : []),
    ...(isOutOfOrder ? ['entries are out of order'] : []),
  ]
}

/** All parks of the races know of no signal. */
async function nobodySleepsBesideASignal({ store }: Arena, { entries, delayed }: World): Promise<string[]> {
  const ids = entries.filter(({ name }) => isSignal(name)).map(({ id }) => id)
  if (ids.length === 0 || delayed) return []
  const records = await store.operations.find({ ids })
  const sleeps = records.some((record) => record?.state === 'scheduled' && record.parked !== undefined)
  return sleeps ? ['a parked job sleeps beside its signal'] : []
}

/** Now, and when rates, pauses and delays are over: then some process has swept. */
async function nobodySleepsBesideWork(arena: Arena, world: World): Promise<string[]> {
  const { queue } = world
  for (let left = 10; world.sleeper?.again && left > 0; left--) {
    const effect = await perform(arena.calls, operation('sleep'), world)
    effect()
  }
  for (const when of ['now', 'later'] as const) {
    const { sleeper } = world
    if (sleeper === undefined) return []
    if (when === 'later') {
      world.pass(LATER)
      await arena.store.operations.sweep({ limit: ALL })
    }
    const { at, retryAfter, told } = sleeper
    // It looks by itself once a second.
    if (world.now - at >= arena.forgets) return []
    if (sleeper.again || (retryAfter !== null && at + retryAfter <= world.now)) return []
    if ((await arena.told(queue)) > told) return []
    const startable = await arena.probe(world)
    if (startable.length > 0)
      return (await arena.toldSoon(queue, told)) ? [] : [`a job can start ${when}, and the worker sleeps`]
  }
  return []
}

/** When no rate and no pause holds anything: each group with waiting jobs and a free slot gets one, unless the queue is at its limit. */
async function everyGroupGetsItsTurn(arena: Arena, world: World): Promise<string[]> {
  const { store } = arena
  const { queue } = world
  world.pass(LATER)
  await store.operations.sweep({ limit: ALL })
  const [stats] = await store.operations.stats({ queue })
  if (stats === undefined) return []
  const { limits, counts } = stats
  const groups = limits?.grouped ? ((await store.operations.groups?.({ queue, limit: ALL })) ?? []) : []
  const started = await arena.probe(world)
  if (limits?.running && counts.running + started.length >= limits.running) return []
  if (limits?.rate && started.length > 0) return []
  if (counts.waiting > 0 && !limits?.grouped && started.length < Math.min(counts.waiting, 40) && !limits?.rate)
    return ['a waiting job is not claimed']
  const passedOver = groups.filter(({ group, waiting, running, limits: own }) => {
    const most = own?.running ?? (group === '' ? null : limits?.groupRunning) ?? Number.POSITIVE_INFINITY
    return waiting > 0 && running < most && !started.some((name) => (name ?? '') === group)
  })
  return passedOver.length > 0 ? ['a group is passed over'] : []
}

async function everythingIsWorkedOff(arena: Arena, world: World): Promise<string[]> {
  const { store } = arena
  const { queue } = world
  for (let left = MOST_ROUNDS; ; left--) {
    await store.operations.complete({ queue, items: world.take(ALL).map((hold) => ({ ...hold, result: null })) })
    world.pass(LONG)
    await store.operations.sweep({ limit: ALL })
    const [stats] = await store.operations.stats({ queue })
    const { blocked = 0, scheduled = 0, waiting = 0, running = 0 } = stats?.counts ?? {}
    if (!world.failed && (stats?.totals.cancelled ?? 0) > 0) return ['a child is cancelled, and no parent has failed']
    if (blocked + scheduled + waiting + running === 0) break
    if (left === 0)
      return [`jobs are stuck: ${blocked} blocked, ${scheduled} scheduled, ${waiting} waiting, ${running} running`]
    const { jobs } = await store.operations.claim({ queue, worker: 'w', limit: 40, lease: LONG })
    world.hold(jobs)
  }
  const { jobs, retryAfter } = await store.operations.claim({ queue, worker: 'w', limit: 40, lease: LONG })
  const faults = await arena.inside(world, true)
  faults.push(...(await countsAreRows(arena, world)))
  if (jobs.length > 0) faults.push('a job of an empty queue')
  if (retryAfter !== null) faults.push('an empty queue asks to be claimed again')
  return faults
}
