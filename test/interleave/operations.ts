/**
 * The operations that sessions of a race make, and how each is made on a world. An operation is plain data, so that a finding can be printed and
 * repeated. What it works on (which claims, which ids) is chosen when it is made: the first of what the world holds then.
 */

import type { Input, Operations, Store } from '../../src/store.ts'
import type { Claimed, ClaimRequest, Hold, JobRecord, NewJob, Park } from '../../src/values/jobs/records.ts'
import type { RequeueRequest } from '../../src/values/operations/requests.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import type { Config } from './configs.ts'
import type { World } from './world.ts'

export const KINDS = [
  ...([
    'push',
    'pushMany',
    'pushInTransaction',
    'claim',
    'sleep',
    'complete',
    'fail',
    'failLater',
    'release',
    'pause',
    'extend',
  ] as const),
  ...([
    'sweep',
    'limitGroup',
    'configure',
    'override',
    'clear',
    'settings',
    'cancel',
    'kill',
    'requeue',
    'requeueUntil',
  ] as const),
  ...(['bulkRequeue', 'bulkCancel', 'bulkUpdate', 'bulkRemove'] as const),
  ...(['removeWaiting', 'removeQueue'] as const),
  ...(['heartbeat', 'update', 'updateLater', 'remove', 'restore'] as const),
  // Pushes of jobs that wait for others, or that others wait for.
  ...(['child', 'childInTransaction', 'partOf', 'graph'] as const),
  // Pushes of one key.
  ...(['unique', 'replace', 'replaceLater', 'follow'] as const),
  // What steps need.
  ...(['journal', 'signal', 'parkLater', 'parkAfter', 'requeueFrom'] as const),
  ...(['fire', 'fireKeyed', 'declare', 'pauseSchedule', 'resumeSchedule'] as const),
] as const
export type Kind = (typeof KINDS)[number]

export interface Operation {
  kind: Kind
  /** Ms that pass before it. */
  wait: number
  /** Of a push, and of `limitGroup`. */
  group: string
  priority: number
  /** Of a claim, or of how many claims it ends. */
  limit: number
  /** Of `limitGroup`: at most so many of the group at once; null: its own limits end. Of `configure` and `override`: a change of limits. */
  running: number | null
}

export const operation = (kind: Kind, given: Partial<Operation> = {}): Operation => ({
  ...{ kind, wait: 0, group: 'a', priority: 4, limit: 40, running: 3 },
  ...given,
})

/** As a finding prints it. */
export function describe({ kind, wait, group, priority, limit, running }: Operation): string {
  const words: string[] = [kind]
  if (kind.startsWith('push')) words.push(group, `${priority}`)
  if (kind === 'claim') words.push(`${limit}`)
  if (kind === 'limitGroup') words.push(group, `${running}`)
  if (kind === 'configure' || kind === 'override') words.push(`${running}`)
  if (wait > 0) words.push(`+${wait}ms`)
  return words.join(' ')
}

/** What a session calls. */
export interface Calls
  extends Pick<
    Operations,
    | 'configure'
    | 'limitGroup'
    | 'push'
    | 'claim'
    | 'complete'
    | 'fail'
    | 'release'
    | 'extend'
    | 'cancel'
    | 'heartbeat'
    | 'update'
    | 'remove'
    | 'restore'
    | 'fire'
    | 'declare'
    | 'pauseSchedule'
    | 'bulk'
    | 'journal'
    | 'signal'
  > {
  /** As an application does it in its own transaction, where the store has them. */
  pushInTransaction(input: Input<'push'>): Promise<unknown>
  settings(input: Input<'settings'>): Promise<unknown>
  requeue(input: RequeueRequest): Promise<unknown>
  sweep(input: Input<'sweep'>): Promise<unknown>
  /** A claim of the process that sleeps after a short answer. `again`: it asks once more at once. */
  sleep(request: ClaimRequest): Promise<Claimed & { again: boolean }>
}

/** What becomes true with the commit. */
export type Effect = () => void

const MOST_HOLDS = 3
/** After one of these, more may run than the present limits allow. */
const CHANGES: ReadonlySet<Kind> = new Set(['limitGroup', 'configure', 'override', 'clear', 'removeQueue'])
/** After one of these, children may be cancelled. */
const FAILURES: ReadonlySet<Kind> = new Set([
  ...(['kill', 'cancel', 'remove', 'bulkCancel', 'bulkRemove', 'removeWaiting', 'removeQueue'] as const),
])
const RETRY_LATER = 1000
const PAUSE = 500
const UNIQUE = 800
const LEASE = 30_000

/** Makes the call. What it works on is chosen before the first await. */
export function perform(calls: Calls, { kind, ...op }: Operation, world: World): Promise<Effect> {
  world.pass(op.wait)
  const { queue } = world
  if (CHANGES.has(kind)) world.changed = true
  if (FAILURES.has(kind)) world.failed = true
  const request = { queue, worker: 'w', limit: op.limit, lease: LEASE }
  const error = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }
  const nothing = () => {}
  const end = (call: (holds: Hold[]) => Promise<unknown>): Promise<Effect> => {
    const holds = world.take(Math.min(MOST_HOLDS, op.limit))
    return call(holds).then(() => () => world.ended(holds))
  }
  const pushed = (jobs: NewJob[], push: (input: Input<'push'>) => Promise<unknown> = calls.push) =>
    push({ jobs }).then(() => () => void world.pushed.push(...jobs.map(({ id }) => id)))
  switch (kind) {
    case 'push':
      return pushed([world.job(op)])
    case 'pushMany':
      return pushed([world.job(op), world.job(op), world.job(op)])
    case 'unique':
      return pushed([world.keyed(op, { unique: { for: UNIQUE, since: 'end' } })])
    case 'replace':
      return pushed([world.keyed(op, { replace: true })])
    case 'replaceLater':
      return pushed([{ ...world.keyed(op, { replace: true, maxWait: RETRY_LATER }), delay: RETRY_LATER }])
    case 'follow':
      return pushed([world.keyed(op, { follow: true })])
    case 'pushInTransaction':
      return pushed([world.job(op)], calls.pushInTransaction)
    case 'child':
      return pushed([world.child(op, idsMet(world))])
    case 'childInTransaction':
      return pushed([world.child(op, idsMet(world))], calls.pushInTransaction)
    case 'partOf':
      return pushed([world.part(op, idsMet(world)[0])])
    case 'graph': {
      const first = world.job(op)
      const second = world.child(op, [first.id])
      const jobs = [first, second, world.child(op, [...idsMet(world), second.id])]
      return pushed(jobs, (input) => calls.push({ ...input, ...(world.graphs && { whole: true }) }))
    }
    case 'claim':
      return calls.claim(request).then(
        ({ jobs }) =>
          () =>
            world.hold(jobs),
      )
    case 'sleep': {
      const at = world.now
      return world.told().then(async (told) => {
        const { jobs, retryAfter, again } = await calls.sleep(request)
        return () => {
          world.hold(jobs)
          world.sleeper = jobs.length > 0 ? undefined : { at, told, retryAfter, again }
        }
      })
    }
    case 'complete':
      return end((holds) => calls.complete({ queue, items: holds.map((hold) => ({ ...hold, result: null })) }))
    case 'fail':
      return end((holds) => calls.fail({ queue, items: holds.map((hold) => ({ ...hold, error, delay: 0 })) }))
    case 'failLater':
      return end((holds) => calls.fail({ queue, items: holds.map((hold) => ({ ...hold, error, delay: RETRY_LATER })) }))
    case 'release':
      return end((holds) => calls.release({ queue, items: holds }))
    case 'pause':
      return end((holds) => calls.release({ queue, items: holds.map((hold) => ({ ...hold, pause: PAUSE })) }))
    case 'extend':
      // The other way round than whoever ends them.
      return calls
        .extend({
          queue,
          lease: LEASE,
          items: world.newestFirst(MOST_HOLDS).map((hold) => ({ ...hold, progress: null })),
        })
        .then(() => nothing)
    case 'sweep':
      return calls.sweep({ limit: 100 }).then(() => nothing)
    case 'limitGroup': {
      const limits = op.running === null ? null : { running: op.running, rate: null, weight: 1 }
      return calls.limitGroup({ queue, group: op.group, limits }).then(() => nothing)
    }
    case 'configure':
      return calls.configure({ queue, ...changed(world.config, op.running) }).then(() => nothing)
    case 'override':
      return calls.configure({ queue, by: 'operator', ...changed(world.config, op.running) }).then(() => nothing)
    case 'clear':
      return calls
        .configure({ queue, by: 'operator', clear: ['running', 'rate', 'groupRunning', 'groupRate'] })
        .then(() => nothing)
    case 'settings':
      return calls.settings({ queue }).then(() => nothing)
    case 'heartbeat': {
      const lanes = [{ minPriority: 8, reserve: 2 }]
      const worker = { id: 'w', queue, host: 'h', pid: 1, slots: 10, busy: 0, lanes }
      return calls.heartbeat({ workers: [worker], gone: ['v'] }).then(() => nothing)
    }
    case 'kill':
      return end((holds) => calls.fail({ queue, items: holds.map((hold) => ({ ...hold, error, delay: null })) }))
    case 'cancel': {
      const ids = idsMet(world)
      return calls.cancel({ ids }).then(() => () => void world.cancelled.push(...ids))
    }
    case 'update':
      return calls.update({ items: idsMet(world).map((id) => ({ id, priority: 9 })) }).then(() => nothing)
    case 'updateLater':
      world.delayed = true
      return calls.update({ items: idsMet(world).map((id) => ({ id, delay: RETRY_LATER })) }).then(() => nothing)
    case 'remove':
      return calls.remove({ ids: idsMet(world) }).then(() => nothing)
    case 'restore': {
      const record = recordOf(world.job(op), world.now)
      return calls.restore({ records: [record] }).then(() => () => void world.pushed.push(record.id))
    }
    case 'fire':
    case 'fireKeyed': {
      const once = op.priority > 4 ? { follow: true } : { unique: { for: UNIQUE, since: 'end' as const } }
      const job = kind === 'fire' ? world.job(op) : world.keyed(op, once)
      const expected = world.scheduledAt
      const firing = { name: queue, version: world.version, expected, next: expected + 1, jobs: [job] }
      return calls.fire({ firings: [firing] }).then(
        ([outcome]) =>
          () =>
            world.fired(job.id, expected, outcome?.status === 'fired'),
      )
    }
    case 'declare': {
      const version = `${Number(world.version) + 1}`
      return calls.declare({ schedules: [scheduleOf(queue, version)] }).then(() => () => world.declared(version))
    }
    case 'pauseSchedule':
    case 'resumeSchedule':
      return calls.pauseSchedule({ name: queue, paused: kind === 'pauseSchedule' }).then(() => nothing)
    case 'journal': {
      const items = world.newestFirst(MOST_HOLDS).map((hold) => {
        const name = world.entryName('=')
        return { ...hold, entries: [{ name, meta: '{}', body: null }] }
      })
      return calls.journal({ queue, items }).then((outcomes) => () => {
        for (const [at, { id, entries }] of items.entries()) if (outcomes[at] === 'ok') world.kept(id, entries)
      })
    }
    case 'signal': {
      const ids = idsMet(world)
      const items = ids.map((id) => ({ id, name: world.entryName('!go/'), meta: '{}', body: null }))
      return calls.signal({ items }).then((outcomes) => () => {
        for (const [at, item] of items.entries()) if (outcomes[at]?.status === 'ok') world.kept(item.id, [item])
      })
    }
    case 'parkLater':
      return end((holds) => calls.release({ queue, items: holds.map((hold) => ({ ...hold, park: parkOf(world) })) }))
    case 'parkAfter': {
      // Nobody waits for one that came later, so none wait for each other.
      const running = world.newestFirst(Number.POSITIVE_INFINITY).map(({ id }) => id)
      const before = (id: string) => (world.graphs ? running.filter((other) => other < id) : [])
      return end((holds) =>
        calls.release({ queue, items: holds.map((hold) => ({ ...hold, park: parkOf(world, before(hold.id)) })) }),
      )
    }
    case 'requeueFrom':
      world.forgot = true
      return calls.requeue({ ids: world.cancelled.slice(0, 3), forget: 1 }).then(() => nothing)
    case 'requeue':
      return calls.requeue({ ids: world.cancelled.slice(0, 3) }).then(() => nothing)
    case 'requeueUntil':
      return calls.requeue({ queue, limit: 2, until: world.now }).then(() => nothing)
    case 'bulkRequeue':
      return calls.bulk({ queue, state: 'cancelled', change: { kind: 'requeue' }, limit: 2 }).then(() => nothing)
    case 'bulkCancel':
      return calls
        .bulk({ queue, state: 'waiting', change: { kind: 'cancel' }, limit: 2, filter: { group: op.group } })
        .then(() => nothing)
    case 'bulkRemove':
      return calls
        .bulk({ queue, state: 'waiting', change: { kind: 'remove' }, limit: 2, filter: { group: op.group } })
        .then(() => nothing)
    case 'removeWaiting':
      return calls.remove({ queue, state: 'waiting', limit: op.limit }).then(() => nothing)
    case 'removeQueue':
      return calls.remove({ queue, limit: op.limit }).then(() => nothing)
    case 'bulkUpdate':
      return calls
        .bulk({ queue, state: 'waiting', change: { kind: 'update', priority: 9 }, limit: 2 })
        .then(() => nothing)
  }
}

/** The worker knows of no signal. */
const parkOf = (world: World, after: readonly string[] = []): Park => ({
  ...{ until: world.now + RETRY_LATER, signals: 0, after, reason: '{}' },
  entries: [{ name: world.entryName('='), meta: '{}', body: null }],
})

/** Of those that run, the other way round than whoever ends them, and of one that may wait. */
const idsMet = (world: World): string[] => [
  ...world.newestFirst(MOST_HOLDS).map(({ id }) => id),
  ...world.pushed.slice(-1),
]

/** Of the queue's name. Whatever is raced, its line stays the same. */
export const scheduleOf = (queue: string, version: string): Declaration => ({
  ...{ name: queue, version, when: 'every 10s', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null },
  ...{ paused: false, again: false },
  job: {
    ...{ queue, priority: 4, key: null, group: 'a', cost: 1, attempts: 1000, timeout: null },
    data: { encoding: 'json', body: version },
  },
})

const recordOf = ({ id, queue, priority, group, key, timeout, trace, data }: NewJob, now: number): JobRecord => ({
  ...{ id, queue, priority, group, key, timeout, trace, data, state: 'waiting', attempt: 1, attempts: 1000, fence: 1 },
  ...{
    cost: 1,
    pushedAt: now,
    dueAt: now,
    startedAt: now,
    finishedAt: null,
    worker: 'w',
    progress: null,
    result: null,
  },
  error: null,
})

/** Other limits than the queue began with. A queue without limits gets some. */
function changed({ limits }: Config, running: number | null): Config['limits'] {
  if (limits.groupRate) return { groupRate: { count: 1000, per: 1000, burst: 10 } }
  if (limits.rate) return { rate: { count: 1000, per: 1000, burst: 10 } }
  if (limits.running) return { running: running ?? 1 }
  return { groupRunning: running ?? 1 }
}

/** The calls of a store as they are: each is its own commit. */
export function storeCalls({ operations }: Store): Calls {
  return {
    ...operations,
    pushInTransaction: (input) => operations.push(input),
    sleep: async (request) => ({ ...(await operations.claim(request)), again: false }),
  }
}
