/** A pond with very many groups, schedules and blocked jobs, and every operation on it: what one call costs must not depend on how many. */
import type { Store } from '../../src/store.ts'
import type { ClaimedJob, NewJob } from '../../src/values/jobs/records.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { claim } from '../conformance/suite.ts'
import { ERROR, NULL, newJob, newJobs } from '../support/jobs.ts'

export interface SceneSizes {
  groups: number
  schedules: number
  blocked: number
  /** Jobs of a whole push, of other calls, and of a page. */
  whole: number
  list: number
  page: number
}

export interface Clock {
  now: number
}

/** One call, or a few of the same operation. */
export interface Step {
  name: string
  /** A whole push may take longer than all else. */
  isWhole?: boolean
  /** As many calls as there is to do. */
  isMany?: boolean
  /** It cannot be repeated. */
  isOnce?: boolean
  /** What it needs; not measured. */
  prepare?(): Promise<unknown>
  run(): Promise<unknown>
}

const entryOf = (name: string) => ({ name, meta: '{}', body: NULL })
const parkOf = (after: readonly string[]) => ({
  until: null,
  signals: 0,
  after,
  entries: [entryOf('=nap')],
  reason: '{}',
})

/** How many parents have very many children, and how many children all others have. */
const LARGE_PARENTS = 4
const FEW = 1000
/** Jobs of a call that fills the scene. */
const PUSHED = 500
const DAY = 86_400_000

export class Scene {
  readonly store: Store
  readonly clock: Clock
  readonly sizes: SceneSizes
  /** Parents of very many blocked jobs each. */
  readonly #large: NewJob[] = newJobs(LARGE_PARENTS, { queue: 'parents', priority: 0 })
  readonly #children: NewJob[] = []
  #held: ClaimedJob[] = []
  #next = 0

  constructor(store: Store, clock: Clock, sizes: SceneSizes) {
    this.store = store
    this.clock = clock
    this.sizes = sizes
  }

  /** @param tell gets what is being stored */
  async fill(tell: (what: string) => void = () => {}): Promise<void> {
    const { operations } = this.store
    const { groups, schedules, blocked } = this.sizes
    await operations.configure({ queue: 'grouped', groupRunning: 1, keepDone: DAY })
    await operations.configure({ queue: 'plain', keepDone: 1000, keepDead: DAY })
    await operations.configure({ queue: 'small', capacity: 1 })
    await operations.push({ jobs: [newJob({ queue: 'small' })] })
    tell(`${groups} groups`)
    await this.#pushEach(groups, (n) => newJob({ queue: 'grouped', group: `g${n}` }))
    await this.#pushEach(Math.min(groups, FEW), (n) => newJob({ queue: 'grouped', group: `g${n}` }))
    tell(`${schedules} schedules`)
    for (let from = 0; from < schedules; from += 100) {
      const some = Array.from({ length: Math.min(100, schedules - from) }, (_, n) => declarationOf(from + n))
      await operations.declare({ schedules: some })
      const firings = some.map(({ name, version }, n) => {
        return { name, version, expected: this.clock.now, next: this.clock.now + DAY + from + n, jobs: [] }
      })
      await operations.fire({ firings })
    }
    tell(`${blocked} blocked jobs`)
    await operations.push({ jobs: this.#large })
    const large = Math.floor((blocked * 0.9) / LARGE_PARENTS)
    for (const { id } of this.#large) {
      await this.#pushEach(large, () => newJob({ queue: 'blocked', after: [id] }))
      this.#children.push(...newJobs(100, { queue: 'blocked', after: [id] }))
    }
    await operations.push({ jobs: this.#children })
    for (let left = Math.ceil(blocked * 0.1); left > 0; left -= FEW) {
      const [parent] = newJobs(1, { queue: 'others' })
      await operations.push({ jobs: [parent as NewJob] })
      await this.#pushEach(Math.min(FEW, left), () => newJob({ queue: 'blocked', after: [parent?.id ?? ''] }))
    }
    // The groups have their turns sorted.
    for (let calls = 0; calls <= groups / 1000; calls++) await claim(this.store, { queue: 'grouped', limit: 1 })
  }

  async #pushEach(count: number, jobOf: (n: number) => NewJob): Promise<void> {
    for (let from = 0; from < count; from += PUSHED) {
      const jobs = Array.from({ length: Math.min(PUSHED, count - from) }, (_, n) => jobOf(from + n))
      await this.store.operations.push({ jobs })
    }
  }

  readonly #push = (given: Partial<NewJob>, count: number = this.sizes.list) =>
    this.store.operations.push({ jobs: newJobs(count, given) })

  readonly #hold = async (queue: string, limit: number = this.sizes.list): Promise<void> => {
    this.#held = (await claim(this.store, { queue, limit, lease: 60_000 })).jobs
  }

  readonly #items = () => this.#held.map((job) => ({ ...job, claim: job }))

  readonly #sweepAll = async (): Promise<void> => {
    while ((await this.store.operations.sweep({ limit: 1000 })).more);
  }

  /** In their order; each may be repeated a few times. */
  steps(): Step[] {
    const { operations: o } = this.store
    const { list, whole, groups, schedules, page } = this.sizes
    const plain = { queue: 'plain' } as const
    const some = (): NewJob[] => this.#children.slice(0, list)
    /** Claims jobs of the queue that were just pushed. */
    const held = (queue: string) => async () => {
      if (queue === 'plain') await this.#push(plain)
      await this.#hold(queue)
    }
    const wholePush = (name: string, jobs: () => NewJob[]): Step => ({
      ...{ name, isWhole: true },
      run: () => o.push({ jobs: jobs(), whole: true }),
    })
    const nth = (size: number) => this.#next++ % Math.max(1, size)
    return [
      { name: 'push of 1', run: () => this.#push(plain, 1) },
      { name: `push of ${list}`, run: () => this.#push(plain) },
      {
        name: `push of ${list} with keys`,
        run: () => this.#pushEach(list, () => newJob({ ...plain, key: `k${this.#next++}` })),
      },
      {
        name: `push of ${list} to groups`,
        run: () => this.#pushEach(list, () => newJob({ queue: 'grouped', group: `g${nth(groups)}` })),
      },
      {
        name: `push of ${list} children`,
        run: () => this.#push({ queue: 'blocked', after: [this.#large[3]?.id ?? ''] }),
      },
      wholePush(`whole push of ${whole}, plain`, () => newJobs(whole, { queue: 'tree' })),
      wholePush(`whole push of ${whole}, a tree`, () => treeOf(whole, 10)),
      wholePush(`whole push of ${whole}, a chain`, () => treeOf(whole, 1)),
      wholePush(`whole push of ${whole}, a fan-in`, () => fanOf(whole)),
      wholePush(`whole push of ${whole}, refused`, () => [...newJobs(whole - 1, plain), newJob({ queue: 'small' })]),
      { name: `claim of ${list}`, prepare: () => this.#push(plain), run: () => this.#hold('plain') },
      {
        name: `complete of ${list}`,
        prepare: held('plain'),
        run: () => o.complete({ ...plain, items: this.#items().map((item) => ({ ...item, result: NULL })) }),
      },
      {
        name: `fail of ${list}`,
        prepare: held('plain'),
        run: () => o.fail({ ...plain, items: this.#items().map((item) => ({ ...item, error: ERROR, delay: null })) }),
      },
      {
        name: `fail of ${list}, to be tried again`,
        prepare: held('plain'),
        run: () =>
          o.fail({
            ...plain,
            items: this.#items().map((item) => ({ ...item, error: ERROR, delay: 'backoff' as const })),
          }),
      },
      {
        name: `extend of ${list}`,
        prepare: held('plain'),
        run: () =>
          o.extend({ ...plain, lease: 60_000, items: this.#items().map((item) => ({ ...item, progress: NULL })) }),
      },
      { name: `release of ${list}`, run: () => o.release({ ...plain, items: this.#items() }) },
      { name: `claim of ${list}, of groups`, run: () => this.#hold('grouped') },
      {
        name: `complete of ${list}, of groups`,
        run: () => o.complete({ queue: 'grouped', items: this.#items().map((item) => ({ ...item, result: null })) }),
      },
      {
        name: `release of ${list}, of groups`,
        prepare: held('grouped'),
        run: () => o.release({ queue: 'grouped', items: this.#items() }),
      },
      {
        name: `journal of ${list}`,
        prepare: () => this.#push({ queue: 'steps' }).then(() => this.#hold('steps')),
        run: () =>
          o.journal({ queue: 'steps', items: this.#items().map((item) => ({ ...item, entries: [entryOf('=one')] })) }),
      },
      {
        name: `entries of ${list}`,
        run: () => o.entries({ items: this.#items().map(({ id }) => ({ id, after: 0 })) }),
      },
      {
        name: `park of ${list}`,
        run: () => o.release({ queue: 'steps', items: this.#items().map((item) => ({ ...item, park: parkOf([]) })) }),
      },
      {
        name: `signal to ${list}`,
        run: () => o.signal({ items: this.#items().map(({ id }) => ({ id, ...entryOf('!go/1') })) }),
      },
      {
        name: `park of ${list}, for a parent of very many`,
        prepare: () => this.#hold('steps'),
        run: () =>
          o.release({
            queue: 'steps',
            items: this.#items().map((item) => ({ ...item, park: parkOf([this.#large[3]?.id ?? '']) })),
          }),
      },
      { name: `cancel of ${list} with steps`, run: () => o.cancel({ ids: this.#items().map(({ id }) => id) }) },
      { name: `remove of ${list} with steps`, run: () => o.remove({ ids: this.#items().map(({ id }) => id) }) },
      {
        name: 'complete of a parent of very many',
        isOnce: true,
        prepare: () => this.#hold('parents', 1),
        run: () => o.complete({ queue: 'parents', items: this.#items().map((item) => ({ ...item, result: NULL })) }),
      },
      {
        name: 'fail of a parent of very many',
        isOnce: true,
        prepare: () => this.#hold('parents', 1),
        run: () =>
          o.fail({ queue: 'parents', items: this.#items().map((item) => ({ ...item, error: ERROR, delay: null })) }),
      },
      { name: 'sweeps that settle', isMany: true, run: this.#sweepAll },
      {
        name: 'fail of a chain',
        prepare: () => this.#chain(),
        run: () =>
          o.fail({ queue: 'tree', items: this.#items().map((item) => ({ ...item, error: ERROR, delay: null })) }),
      },
      { name: 'sweeps that settle a chain', isMany: true, run: this.#sweepAll },
      {
        name: 'a sweep that promotes',
        prepare: () => this.#push({ ...plain, delay: 1 }, 1000).then(() => this.#pass(1)),
        run: () => o.sweep({ limit: 1000 }),
      },
      {
        name: 'a sweep of lost leases',
        prepare: () =>
          this.#push(plain)
            .then(() => claim(this.store, { ...plain, limit: 500, lease: 50 }))
            .then(() => this.#pass(50)),
        run: () => o.sweep({ limit: 1000 }),
      },
      { name: 'sweeps that remove', isMany: true, prepare: () => this.#pass(1001), run: this.#sweepAll },
      { name: 'a sweep with nothing to do', run: () => o.sweep({ limit: 1000 }) },
      {
        name: 'declare of 100, the same',
        run: () =>
          o.declare({
            schedules: Array.from({ length: 100 }, () => ({ ...declarationOf(nth(schedules)), again: true })),
          }),
      },
      {
        name: 'declare of 100, changed',
        run: () =>
          o.declare({
            schedules: Array.from({ length: 100 }, () => ({
              ...declarationOf(nth(schedules)),
              version: `v${this.#next}`,
              tz: 'UTC',
            })),
          }),
      },
      { name: 'schedules, a page', run: () => o.schedules({ limit: 100, after: 'schedule-000005' }) },
      { name: 'pauseSchedule', run: () => o.pauseSchedule({ name: declarationOf(nth(schedules)).name, paused: true }) },
      { name: 'removeSchedule', run: () => o.removeSchedule({ name: declarationOf(nth(schedules)).name }) },
      { name: 'fire of 100', run: () => this.#fire() },
      { name: 'stats of all', run: () => o.stats({ minutes: 60 }) },
      { name: 'stats of the groups', run: () => o.stats({ queue: 'grouped', minutes: 60 }) },
      { name: 'stats of the blocked', run: () => o.stats({ queue: 'blocked', minutes: 60 }) },
      ...(['blocked', 'waiting', 'scheduled', 'running', 'done', 'dead', 'cancelled'] as const).map((state) => ({
        name: `list of ${state}`,
        run: async () => {
          for (const queue of ['plain', 'grouped', 'blocked']) await o.list({ queue, state, limit: page })
        },
      })),
      {
        name: 'list with a filter',
        run: () => o.list({ queue: 'blocked', state: 'blocked', limit: page, filter: { text: 'no such text' } }),
      },
      { name: 'groups, a page', run: () => o.groups({ queue: 'grouped', limit: page, after: 'g5' }) },
      { name: 'ahead', run: () => o.ahead({ id: some()[0]?.id ?? '' }) },
      { name: 'find', run: () => o.find({ ids: some().map(({ id }) => id) }) },
      { name: 'outcomes', run: () => o.outcomes({ ids: some().map(({ id }) => id) }) },
      { name: 'relatives of a child', run: () => o.relatives({ ids: some().map(({ id }) => id), limit: 100 }) },
      {
        name: 'relatives of a parent of very many, the first',
        run: () => o.relatives({ ids: [this.#large[3]?.id ?? ''], limit: 100 }),
      },
      {
        name: 'relatives of a parent of very many',
        run: () => o.relatives({ ids: [this.#large[3]?.id ?? ''], limit: whole }),
      },
      {
        name: 'bulk, a step',
        run: () =>
          o.bulk({
            queue: 'blocked',
            state: 'blocked',
            change: { kind: 'cancel' },
            limit: page,
            filter: { group: 'none' },
          }),
      },
      {
        name: 'bulk, a step that cancels',
        run: () => o.bulk({ queue: 'blocked', state: 'blocked', change: { kind: 'cancel' }, limit: page }),
      },
      { name: 'update', run: () => o.update({ items: some().map(({ id }) => ({ id, priority: 9 })) }) },
      {
        name: 'cancel of a parent of very many',
        isOnce: true,
        run: () => o.cancel({ ids: [this.#large[2]?.id ?? ''] }),
      },
      { name: `cancel of ${list}`, run: () => o.cancel({ ids: some().map(({ id }) => id) }) },
      { name: 'requeue', run: () => o.requeue({ ids: some().map(({ id }) => id) }) },
      { name: 'remove', run: () => o.remove({ ids: this.#children.splice(0, 3).map(({ id }) => id) }) },
      { name: 'restore', prepare: () => this.#push(plain, 0), run: () => this.#restore() },
      { name: 'configure', run: () => o.configure({ queue: 'grouped', groupRunning: 1 + (this.#next++ % 2) }) },
      {
        name: 'limitGroup',
        run: () =>
          o.limitGroup({ queue: 'grouped', group: `g${nth(groups)}`, limits: { running: 2, rate: null, weight: 1 } }),
      },
      { name: 'settings', run: () => o.settings({ queue: 'grouped' }) },
      { name: 'heartbeat, workers', run: () => this.#beat() },
      {
        name: 'record',
        run: () => o.record({ slices: [{ queue: 'grouped', priority: 4, metric: 'wait', buckets: { 3: 1 } }] }),
      },
    ]
  }

  /** What ends the scene: queues are removed, a step at a time. */
  lastSteps(): Step[] {
    return ['grouped', 'blocked'].map((queue) => ({
      name: `remove of queue ${queue}, in steps`,
      isMany: true,
      isOnce: true,
      run: async () => {
        while ((await this.store.operations.remove({ queue, limit: 1000 })).more);
      },
    }))
  }

  async #pass(ms: number): Promise<void> {
    this.clock.now += ms
  }

  /** A chain whose first job is held. */
  async #chain(): Promise<void> {
    const jobs = treeOf(Math.min(2000, this.sizes.whole), 1)
    const [first] = jobs
    await this.store.operations.push({ jobs: [{ ...(first as NewJob), priority: 9 }, ...jobs.slice(1)], whole: true })
    await this.#hold('tree', 1)
  }

  async #fire(): Promise<void> {
    const { operations } = this.store
    const due = await operations.schedules({ limit: 100, after: 'schedule-000' })
    const firings = due.map(({ name, version, nextAt }) => {
      const jobs = newJobs(1, { queue: 'plain' })
      return { name, version, expected: nextAt ?? 0, next: (nextAt ?? 0) + DAY, jobs }
    })
    await operations.fire({ firings })
  }

  async #restore(): Promise<void> {
    const { operations } = this.store
    const [job] = newJobs(1, { queue: 'plain', delay: DAY })
    await operations.push({ jobs: [job as NewJob] })
    const records = (await operations.find({ ids: [job?.id ?? ''] })).filter((record) => record !== null)
    await operations.remove({ ids: [job?.id ?? ''] })
    await operations.restore({ records })
  }

  async #beat(): Promise<void> {
    const worker = { id: 'w', queue: 'grouped', host: 'h', pid: 1, slots: 2, busy: 0, lanes: null }
    await this.store.operations.heartbeat({ workers: [worker], gone: ['v'] })
    await this.store.operations.workers({})
  }
}

/** Each job waits for the one that has it as one of its `branches` children. */
export function treeOf(count: number, branches: number): NewJob[] {
  const jobs: NewJob[] = []
  for (let at = 0; at < count; at++) {
    const parent = jobs[Math.floor((at - 1) / branches)]
    jobs.push(newJob({ queue: 'tree', ...(parent === undefined ? {} : { after: [parent.id] }) }))
  }
  return jobs
}

/** The last job waits for all others. */
export function fanOf(count: number): NewJob[] {
  const parents = newJobs(count - 1, { queue: 'fan' })
  return [...parents, newJob({ queue: 'fanned', after: parents.map(({ id }) => id), onDead: 'run' })]
}

function declarationOf(n: number): Declaration {
  return {
    ...{ name: `schedule-${String(n).padStart(6, '0')}`, version: '1', when: '0 7 * * *', tz: 'Europe/Paris' },
    ...{ missed: 'once', jitter: 0, from: null, until: null, paused: false, again: false },
    job: {
      ...{ queue: 'scheduled', priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null },
      data: NULL,
    },
  }
}
