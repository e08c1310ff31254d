/**
 * The least that is a store: it can push, claim, extend, end, sweep and count, and has no state for anything else. What needs more answers
 * `NotSupported`. It rings no bells, so workers find their jobs by looking.
 */
import type { Capabilities, Operations, Store, StoreOptions } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { DEFAULTS } from '../../src/stores/defaults.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { ClaimedJob, Hold, JobState, NewJob } from '../../src/values/jobs/records.ts'
import { lacking } from '../../src/values/operations/capabilities.ts'

const CAPABILITIES: Capabilities = {
  ...{ durable: false, shared: false, pipelined: false, transactions: false, replicas: false, spill: false },
  ...{ settings: false },
  ...{
    delays: false,
    priorities: false,
    keys: false,
    once: false,
    graphs: false,
    results: false,
    logs: false,
    steps: false,
    limits: false,
    rates: false,
    groups: false,
  },
  ...{ find: false, lists: false, text: false, cancel: false, update: false, requeue: false, remove: false },
  ...{ restore: false, counts: true, histograms: false, workers: false, schedules: false, bounded: false },
}

interface PlainJob extends ClaimedJob {
  state: JobState
  leaseUntil: number
  /** When it expires, once it has ended. */
  keptUntil: number
}

class PlainQueue {
  /** By place. */
  jobs: PlainJob[] = []
  readonly totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }

  inState(state: JobState): PlainJob[] {
    return this.jobs.filter((job) => job.state === state)
  }
}

export function openPlainStore({ clock = Date.now }: StoreOptions = {}): Store {
  const queues = new Map<string, PlainQueue>()
  let isClosed = false

  const refused = (capability: keyof Capabilities, what = 'this operation') => lacking(store, capability, what)
  const lacks = (capability: keyof Capabilities) => (): Promise<never> => Promise.reject(refused(capability))

  function check({ delay, runAt, priority, key, once, after = [], partOf }: NewJob): void {
    if (delay > 0 || runAt !== null) throw refused('delays', 'a job that is due later')
    if (priority !== 4) throw refused('priorities', 'a priority')
    if (key !== null) throw refused(once ? 'once' : 'keys', 'a key')
    if (after.length > 0 || partOf !== undefined) throw refused('graphs', 'a job that waits for others')
  }

  function pushOne({ id, queue: name, priority, group, key, attempts, timeout, trace, data }: NewJob): void {
    const queue = queues.get(name) ?? new PlainQueue()
    queues.set(name, queue)
    queue.totals.pushed++
    queue.jobs.push({
      ...{ id, priority, group, key, attempts: attempts ?? DEFAULTS.attempts, timeout, trace, data },
      ...{ state: 'waiting', fence: 0, attempt: 0, pushedAt: clock(), dueAt: clock(), leaseUntil: 0, keptUntil: 0 },
    })
  }

  function start(job: PlainJob, lease: number): ClaimedJob {
    job.state = 'running'
    job.fence++
    job.attempt++
    job.leaseUntil = clock() + lease
    const { state: _, leaseUntil: __, keptUntil: ___, ...claim } = job
    return claim
  }

  function end(job: PlainJob, queue: PlainQueue, state: 'done' | 'dead'): void {
    queue.totals[state]++
    job.state = state
    job.keptUntil = clock() + (state === 'done' ? DEFAULTS.keepDone : DEFAULTS.keepDead)
  }

  function tryAgain(job: PlainJob, queue: PlainQueue): 'waiting' | 'dead' {
    if (job.attempt >= job.attempts) {
      end(job, queue, 'dead')
      return 'dead'
    }
    job.state = 'waiting'
    job.dueAt = clock()
    return 'waiting'
  }

  /** Does it to each job whose claim holds. */
  function ofHeld<Item extends Hold, Out>(
    { queue: name, items }: { queue: string; items: readonly Item[] },
    act: (job: PlainJob, item: Item, queue: PlainQueue) => Out,
  ): (Out | 'stale')[] {
    const queue = queues.get(name)
    return items.map((item) => {
      const job = queue?.inState('running').find(({ id, fence }) => id === item.id && fence === item.fence)
      return queue === undefined || job === undefined ? 'stale' : act(job, item, queue)
    })
  }

  const operations: Operations = {
    async push({ jobs, whole = false }) {
      if (whole) throw refused('graphs', 'a push of all or none')
      jobs.forEach(check)
      jobs.forEach(pushOne)
      return jobs.map(({ id }) => ({ status: 'pushed', id }))
    },

    async claim({ queue, limit, lease: asked, minPriority = 0 }) {
      if (minPriority > 0) throw refused('priorities', 'minPriority')
      const lease = asked ?? DEFAULTS.lease
      const waiting = queues.get(queue)?.inState('waiting') ?? []
      const jobs = waiting.slice(0, limit).map((job) => start(job, lease))
      return { now: clock(), lease, jobs, retryAfter: null, limited: false }
    },

    complete: async (input) =>
      ofHeld(input, (job, _, queue) => {
        end(job, queue, 'done')
        return 'ok'
      }),

    fail: async (input) =>
      ofHeld(input, (job, { delay }, queue) => {
        queue.totals.failed++
        if (delay !== null) return tryAgain(job, queue) === 'dead' ? 'dead' : 'retry'
        end(job, queue, 'dead')
        return 'dead'
      }),

    async release(input) {
      if (input.items.some(({ pause }) => pause)) throw refused('rates', 'a pause')
      if (input.items.some(({ park }) => park)) throw refused('steps', 'a park')
      return ofHeld(input, (job, _, queue) => {
        job.state = 'waiting'
        job.attempt--
        queue.totals.released++
        return 'ok'
      })
    },

    extend: async (input) =>
      ofHeld(input, (job) => {
        job.leaseUntil = Math.max(job.leaseUntil, clock() + (input.lease ?? DEFAULTS.lease))
        return 'ok'
      }),

    async sweep({ limit }) {
      const now = clock()
      const all = [...queues].flatMap(([name, queue]) => queue.jobs.map((job) => ({ name, queue, job })))
      const ended = all.filter(({ job }) => job.state === 'running' && job.leaseUntil <= now).slice(0, limit)
      const expired = all.filter(({ job }) => job.keptUntil > 0 && job.keptUntil <= now).slice(0, limit)
      const lost = ended.map(({ name, queue, job }) => {
        queue.totals.lost++
        return { id: job.id, queue: name, attempt: job.attempt, state: tryAgain(job, queue) }
      })
      for (const { queue, job } of expired) queue.jobs = queue.jobs.filter((other) => other !== job)
      const more = Math.max(lost.length, expired.length) >= limit
      return { lost, promoted: 0, expired: expired.length, more, nextDue: null, queues: queues.size, schedules: null }
    },

    async stats({ queue: only }) {
      const asked = [...queues].filter(([name]) => only === undefined || name === only)
      return asked.map(([name, queue]) => {
        const count = (state: JobState) => queue.inState(state).length
        const due = queue.inState('waiting').map(({ dueAt }) => dueAt)
        return {
          ...{ queue: name, paused: false, capacity: null, overrides: {}, lastClaim: null, limits: null },
          counts: {
            ...{ blocked: 0, scheduled: 0, waiting: count('waiting'), running: count('running') },
            ...{ done: count('done'), dead: count('dead'), cancelled: 0 },
          },
          totals: { ...queue.totals },
          oldestWaiting: due.length === 0 ? null : clock() - Math.min(...due),
          ...{ nextStart: 0, groupsAtLimit: 0, groupsHeld: 0, histograms: [] },
        }
      })
    },

    // What these two tell is dropped.
    async record() {},
    heartbeat: async ({ workers }) => workers.map(({ queue }) => queues.has(queue)),

    ...{ configure: lacks('settings'), settings: lacks('settings'), limitGroup: lacks('groups') },
    ...{ cancel: lacks('cancel'), update: lacks('update'), requeue: lacks('requeue'), remove: lacks('remove') },
    ...{
      bulk: lacks('lists'),
      restore: lacks('restore'),
      find: lacks('find'),
      outcomes: lacks('find'),
      ahead: lacks('find'),
      list: lacks('lists'),
    },
    ...{ groups: lacks('groups'), workers: lacks('workers') },
    ...{ declare: lacks('schedules'), schedules: lacks('schedules'), fire: lacks('schedules') },
    ...{ pauseSchedule: lacks('schedules'), removeSchedule: lacks('schedules'), relatives: lacks('graphs') },
    ...{ journal: lacks('steps'), entries: lacks('steps'), signal: lacks('steps') },
  }

  const store: Store = {
    name: 'plain',
    capabilities: CAPABILITIES,
    operations,
    listen: () => () => {},
    async close() {
      isClosed = true
    },
  }
  return around(store, (_, input, next) =>
    isClosed ? Promise.reject(new MillpondError('Closed', 'the plain store is closed')) : next(input),
  )
}
