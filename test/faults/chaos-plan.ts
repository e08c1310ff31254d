/**
 * What the processes of a chaos push: units that follow from a seed alone, so that each process and the test know them. A unit is a graph, a
 * graph with keys, a list with keys and a callback, or a graph that is cancelled and requeued in bulk.
 */
import { createHash } from 'node:crypto'
import type { QueueOptions } from '../../src/index.ts'
import type { FinalState, OnDead } from '../../src/values/jobs/records.ts'
import { seeded } from './harness.ts'

/** Most jobs that run at once: of all orders, and of each group of mails. */
export const ORDERS_RUNNING = 6
export const GROUP_RUNNING = 2
/** The schedules push here. A job that is done is gone, so that a second push of the same time would run. */
export const TICKS = 'ticks'
const GROUPS = 4
const KEYS = 12
/** Jobs of a unit, parents of a job, jobs of a list, at most. */
const MOST = 60
const PARENTS = 4
const LIST = 30
/** Jobs of this group are cancelled and requeued in bulk. */
export const BULK_GROUP = 'bulk'

const kept = {
  keep: { done: '1h', dead: '1h' },
  retry: { attempts: 1000, backoff: { type: 'fixed', base: 20 } },
} as const

export const queuesOf = (lease: number): Record<string, QueueOptions> => ({
  // A unit with many orders meets a full queue now and then.
  orders: { ...kept, lease, capacity: 60, limits: { running: ORDERS_RUNNING } },
  mails: { ...kept, lease, limits: { group: { running: GROUP_RUNNING } } },
  reports: { ...kept, lease },
  [TICKS]: { ...kept, lease, keep: { done: 0 } },
})
export const UNIT_QUEUES = ['orders', 'mails', 'reports'] as const

/** What a ledger of limits counts a job as. */
export const labelOf = (queue: string, group: string | null): string => (group === null ? queue : `${queue}/${group}`)
export const MAIL_GROUPS = [...Array(GROUPS).keys()]
  .map((n) => labelOf('mails', `g${n}`))
  .concat(labelOf('mails', BULK_GROUP))

export interface PlannedJob {
  queue: string
  /** Places of earlier jobs of the unit. */
  parents: readonly number[]
  onDead: OnDead
  /** `dead`: it has one attempt, and fails. `once`: it fails at its first attempt. */
  fails: 'no' | 'once' | 'dead'
  group?: string
  /** Only of jobs without parents: beside an existing key they would count for nothing. */
  key?: string
  priority: number
  delay: number
}

export interface Unit {
  kind: 'graph' | 'keys' | 'callback' | 'bulk'
  jobs: readonly PlannedJob[]
}

/** Of a job of one try to push a unit: each try is of jobs of its own. */
export function idOf(seed: number, unit: number, attempt: string, at: number): string {
  const hex = createHash('sha256').update(`${seed} ${unit} ${attempt} ${at}`).digest('hex')
  return `019b76da-a800-7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`
}

export function unitOf(seed: number, unit: number): Unit {
  const random = seeded(seed + unit)
  const upTo = (count: number) => Math.floor(random() * count)
  const chance = (part: number) => random() < part
  const kind = chance(0.5) ? 'graph' : ((['keys', 'callback', 'bulk'] as const)[upTo(3)] ?? 'graph')
  const count = 1 + upTo(kind === 'callback' ? LIST : MOST)
  const listQueue = UNIT_QUEUES[upTo(UNIT_QUEUES.length)] ?? 'orders'
  const jobs: PlannedJob[] = []
  for (let at = 0; at < count; at++) {
    const queue = kind === 'callback' ? listQueue : (UNIT_QUEUES[upTo(UNIT_QUEUES.length)] ?? 'orders')
    // Now and then one that waits for very many.
    const wanted = kind === 'callback' || at === 0 ? 0 : upTo(50) === 0 ? upTo(at) : upTo(PARENTS)
    const parents = [...new Set(Array.from({ length: wanted }, () => upTo(at)))]
    const group = kind === 'bulk' ? BULK_GROUP : queue === 'mails' ? `g${upTo(GROUPS)}` : undefined
    const isKeyed = (kind === 'keys' || kind === 'callback') && parents.length === 0 && chance(0.6)
    jobs.push({
      ...{ queue, parents, onDead: upTo(3) === 0 ? 'run' : 'cancel', priority: upTo(10) },
      fails: chance(0.02) ? 'dead' : chance(0.05) ? 'once' : 'no',
      delay: chance(0.1) ? upTo(100) : 0,
      ...(group === undefined ? {} : { group }),
      ...(isKeyed ? { key: `k${upTo(KEYS)}` } : {}),
    })
  }
  if (kind === 'callback') {
    const last = { queue: 'reports', onDead: 'run', fails: 'no', priority: 9, delay: 0 } as const
    jobs.push({ ...last, parents: [...jobs.keys()] })
  }
  return { kind, jobs }
}

/** As many units as have `count` jobs or more. */
export function unitsOf(seed: number, count: number): Unit[] {
  const units: Unit[] = []
  for (let jobs = 0; jobs < count; jobs += units.at(-1)?.jobs.length ?? 0) units.push(unitOf(seed, units.length))
  return units
}

/** How each job of a graph must end: nobody but their parents decides about them. */
export function endsOf({ jobs }: Unit): FinalState[] {
  const ends: FinalState[] = []
  for (const { parents, onDead, fails } of jobs) {
    const isOrphaned = onDead === 'cancel' && parents.some((parent) => ends[parent] !== 'done')
    ends.push(isOrphaned ? 'cancelled' : fails === 'dead' ? 'dead' : 'done')
  }
  return ends
}
