/** What the API tests share: each test on every store, and ways to wait for what must come. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, describe, test } from 'node:test'
import {
  type ErrorCode,
  isMillpondError,
  type JobInfo,
  type JobState,
  Millpond,
  type MillpondError,
  type OpenOptions,
  type Worker,
} from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { giveBackSchema, takeSchema } from '../stores/postgres-fixture.ts'
import { removePrefix } from '../stores/redis-fixture.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { meddled } from '../support/meddled.ts'
import { until } from '../support/until.ts'
import { isInThisRun } from '../support/variants.ts'

/** A store's place, empty at first. Everything opened in it is closed, and the place removed, when the test ends. */
export interface Place {
  /** Opens a pond; where `shared`, every pond of the place is on the same store. */
  open(options?: OpenOptions): Promise<Millpond>
  readonly url: string
  readonly shared: boolean
  readonly transactions: boolean
}

interface StoreUnderTest {
  name: string
  shared: boolean
  transactions: boolean
  replicas: boolean
  /** One with a lock that a test can hold. Other stores' troubles are in their own tests. */
  file: boolean
  /** Why it cannot be tested here. */
  skip?: string | false
  /** An empty place. @param folder a fresh one, for its files */
  place(folder: string): {
    url: string
    /** Removes what is not in the folder. */
    remove?: () => Promise<void>
  }
}

/** The prefix of a place's keys is the folder's name. */
const redis = (name: 'redis' | 'redis-cluster'): StoreUnderTest => ({
  name,
  shared: true,
  transactions: false,
  replicas: false,
  file: false,
  skip: missingReason(name),
  place: (folder) => ({
    url: `${serverUrl(name)}?prefix=${basename(folder)}`,
    remove: () => removePrefix(serverUrl(name) ?? '', basename(folder)),
  }),
})

const postgres = (name: 'postgres' | 'pgbouncer'): StoreUnderTest => ({
  name,
  shared: true,
  transactions: true,
  replicas: true,
  file: false,
  skip: missingReason(name),
  place() {
    const schema = takeSchema()
    return { url: `${serverUrl(name)}?schema=${schema}`, remove: () => giveBackSchema(schema) }
  },
})

const EVERY_STORE: readonly StoreUnderTest[] = [
  {
    name: 'memory',
    shared: false,
    transactions: false,
    replicas: false,
    file: false,
    place: () => ({ url: 'memory:' }),
  },
  {
    name: 'sqlite',
    shared: true,
    transactions: true,
    replicas: false,
    file: true,
    place: (folder) => ({ url: `sqlite:${join(folder, 'test.db')}?sync=normal` }),
  },
  redis('redis'),
  redis('redis-cluster'),
  postgres('postgres'),
  postgres('pgbouncer'),
]

/** Those of this run: what `npm test` leaves out, `npm run test:deep` runs. */
export const STORES = EVERY_STORE.filter(isInThisRun)

type Check = (place: Place) => Promise<void>

/** Why a store is not asked for what a check is about; false: it is. */
const TRAITS = {
  shared: (store: StoreUnderTest) => !store.shared && 'the store is not shared',
  transactions: (store: StoreUnderTest) => !store.transactions && 'the store has no transactions',
  'no transactions': (store: StoreUnderTest) => store.transactions && 'the store has transactions',
  'no replicas': (store: StoreUnderTest) => store.replicas && 'the store has replicas, and tests of its own for them',
  file: (store: StoreUnderTest) => !store.file && 'the store is no file whose lock a test can hold',
}
type Trait = keyof typeof TRAITS

/** Runs each check at a fresh place of every store, or of those with the trait; the others are listed as skipped. */
export function onEachStore(topic: string, checks: Record<string, Check>, trait?: Trait): void {
  for (const store of STORES) {
    describe(`${topic}: ${store.name}`, { skip: store.skip ?? false }, () => {
      for (const [title, check] of Object.entries(checks)) {
        const skip = trait !== undefined && TRAITS[trait](store)
        test(title, { skip, timeout: 60_000 }, () => atPlace(store, check))
      }
    })
  }
}

async function atPlace(store: StoreUnderTest, check: Check): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-api-'))
  const ponds: Millpond[] = []
  const { url, remove } = store.place(folder)
  const { shared, transactions } = store
  const open = async (options?: OpenOptions) => {
    const pond = await Millpond.open(url, options)
    ponds.push(pond)
    return pond
  }
  try {
    await check({ open, url, shared, transactions })
  } finally {
    // A handler that a failed test left hanging must not hold the end up.
    await Promise.allSettled(ponds.map((pond) => pond.close({ timeout: 100 })))
    await remove?.()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Gives URLs of empty places, which are removed after the suite that asks for this. */
export function emptyPlaces(place: StoreUnderTest['place']): () => string {
  const removals: (() => Promise<void>)[] = []
  after(async () => {
    for (const remove of removals) await remove()
  })
  return () => {
    const folder = sharedFolder()
    const { url, remove } = place(folder)
    if (remove !== undefined) removals.push(remove)
    return url
  }
}

/** A pond on a store that says it has no limits, as a store of another kind may. */
export async function withoutLimits(check: (pond: Millpond) => Promise<void>): Promise<void> {
  const lacks = { priorities: false, limits: false, rates: false, groups: false }
  const pond = new Millpond(meddled(await openStore('memory:', {}), {}, lacks), 1_000)
  try {
    await check(pond)
  } finally {
    await pond.close({ timeout: 100 })
  }
}

/** The job, once it is in the state. */
export async function inState(pond: Millpond, id: string, state: JobState): Promise<JobInfo> {
  let info: JobInfo | undefined
  await until(async () => {
    info = await pond.job(id)
    return info?.state === state
  }, `job ${id} to be ${state}`)
  assert.ok(info)
  return info
}

/** Waits until so many handlers of the worker have begun: a store says `running` before its answer has reached the worker. */
export async function atWork(worker: Worker, jobs = 1): Promise<void> {
  await until(() => worker.load.running === jobs, `${jobs} handlers to run`)
}

/** Lets a lease run out, by a clock of the test's: once more where a bell that came late made the worker extend it. */
export async function outlast(jump: () => unknown, isOver: () => boolean | Promise<boolean>): Promise<void> {
  let next = 0
  await until(async () => {
    if (await isOver()) return true
    if (performance.now() < next) return false
    jump()
    next = performance.now() + 3000
    return false
  }, 'the lease to be lost')
}

/** Asserts that the call is refused with the code, and with a message that says what to do about it. */
export async function refused(
  call: Promise<unknown> | (() => unknown),
  code: ErrorCode,
  message: RegExp = /./,
): Promise<MillpondError> {
  let thrown: unknown
  try {
    const answer = await (typeof call === 'function' ? call() : call)
    assert.fail(`expected ${code}, got an answer: ${String(answer)}`)
  } catch (error) {
    thrown = error
  }
  if (!isMillpondError(thrown, code)) {
    throw new assert.AssertionError({ message: `expected ${code}, got ${String(thrown)}`, actual: thrown })
  }
  assert.match(thrown.message, message)
  return thrown
}

/** Something that a test lets go of when it likes. */
export function gate(): { opened: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

/** Settles when the signal is aborted, with its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason))
  })
}

const NAMES = [
  'pushed',
  'started',
  'completed',
  'failed',
  'dead',
  'cancelled',
  'stale',
  'lost',
  'released',
  'rateLimited',
  'full',
  'error',
] as const

/** Everything that the pond tells, as it comes. */
export function diary(pond: Millpond): { name: (typeof NAMES)[number]; event: object }[] {
  const entries: { name: (typeof NAMES)[number]; event: object }[] = []
  for (const name of NAMES) pond.on(name, (event: object) => entries.push({ name, event }))
  return entries
}

export function first<T>(list: readonly T[]): T {
  const [item] = list
  if (item === undefined) throw new Error('an empty list where one item at least was due')
  return item
}

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
