/**
 * The waiting jobs of a grouped queue. Each group has its jobs in a line of its own; a group that may start one has a ticket.
 *
 *   touched ──next claim──┬─► ticket: by priority of its first job, then virtual time, then place of that job
 *      ▲                  ├─► held: its rate or pause allows a start later
 *      │                  ├─► idle: no job waits or runs; a sweep forgets it a while later
 *                         └─► none of these: as many jobs run as may
 *      └── a job of the group begins or ends to wait or to run; its limits change
 *
 * So only claims decide who is eligible, and a group costs a claim nothing while nothing happens to it.
 * `contract/operations.md` has the order.
 */
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import {
  DEFAULT_GROUP_LIMITS,
  type GroupLimits,
  type GroupRecord,
  type HeldBack,
  type Rate,
} from '../../values/settings/limits.ts'
import { Heap, type HeapEntry } from './heap.ts'
import type { Job } from './job.ts'
import { Throttle } from './throttle.ts'
import { byClaim, type Cursor, WaitingJobs } from './waiting.ts'

const PRIORITIES = 10

/** Ms for which a group is kept that has no jobs. */
const KEEP_IDLE = DEFAULTS.store.keepGroup

/** A claim that is this much before the last one, in milliseconds, shows that the clock was set back. */
const SET_BACK = DEFAULTS.store.setBack

/** Most groups with waiting jobs that `stats` looks at. */
const MAX_COUNTED = DEFAULTS.store.groupsCounted

class Group implements HeapEntry {
  index = -1
  /** That it is in: of tickets, of those that are held, or of those that are idle. */
  heap: Heap<Group> | null = null
  readonly name: string
  readonly waiting = new WaitingJobs()
  running = 0
  limits: GroupLimits = DEFAULT_GROUP_LIMITS
  /** Per priority. */
  readonly virtual: number[] = new Array(PRIORITIES).fill(0)
  readonly throttle = new Throttle()
  /** In milliseconds. */
  heldUntil = 0
  /** While it is idle: when a sweep may forget it, in milliseconds. */
  forgetAt = 0
  /** The priority at which it has a ticket; -1: none. */
  ticket = -1
  /** By these two a ticket stands among others of its priority. `place`: of the first job. */
  virtualTime = 0
  place = 0

  constructor(name: string) {
    this.name = name
  }
}

/** The queue's settings for each group. */
interface GroupSettings {
  groupRunning: number | null
  groupRate: Rate | null
}

export class Groups {
  readonly #settings: GroupSettings
  readonly #groups = new Map<string, Group>()
  readonly #touched = new Set<Group>()
  readonly #tickets = Array.from(
    { length: PRIORITIES },
    () =>
      new Heap<Group>(
        (a, b) => a.virtualTime < b.virtualTime || (a.virtualTime === b.virtualTime && a.place < b.place),
      ),
  )
  readonly #held = new Heap<Group>((a, b) => a.heldUntil < b.heldUntil)
  readonly #idle = new Heap<Group>((a, b) => a.forgetAt < b.forgetAt)
  /** When the last claim examined groups. */
  #claimedAt = Number.NEGATIVE_INFINITY
  /** The group whose turn goes on, and for how many jobs. */
  #turn: Group | null = null
  #turnLeft = 0
  /** The virtual time of each priority. */
  readonly #virtual: number[] = new Array(PRIORITIES).fill(0)
  size = 0

  /** @param settings the queue's own object, read at each claim */
  constructor(settings: GroupSettings) {
    this.#settings = settings
  }

  append(job: Job): void {
    this.#of(job).waiting.append(job)
    this.size++
  }

  putBack(job: Job): void {
    this.#of(job).waiting.putBack(job)
    this.size++
  }

  remove(job: Job): void {
    this.#of(job).waiting.remove(job)
    this.size--
  }

  /** Gives out tickets. To be called at the beginning of a claim. @param now in milliseconds */
  beginClaim(now: number): void {
    if (now < this.#claimedAt - SET_BACK) this.touchAll()
    this.#claimedAt = now
    this.#turn = null
    for (const group of this.#touched) this.#place(group, now)
    this.#touched.clear()
    for (let group = this.#held.first; group !== undefined && group.heldUntil <= now; group = this.#held.first) {
      this.#place(group, now)
    }
  }

  /** The job that the claim starts next, of this priority or a higher one. */
  firstFrom(minPriority: number): Job | null {
    if (this.#turn !== null) return this.#turn.waiting.first
    for (let priority = PRIORITIES - 1; priority >= minPriority; priority--) {
      const group = this.#tickets[priority]?.first
      if (group !== undefined) return group.waiting.first
    }
    return null
  }

  /** The job of `firstFrom` is being started. @param perGroup most jobs of a turn */
  start(job: Job, now: number, perGroup: number): void {
    const group = this.#of(job)
    const { priority } = job
    if (this.#turn === null) {
      this.#virtual[priority] = Math.max(this.#virtual[priority] ?? 0, group.virtualTime)
      this.#turnLeft = perGroup
    }
    group.virtual[priority] = group.virtualTime + job.cost / group.limits.weight
    this.remove(job)
    group.running++
    group.throttle.start(this.#rateOf(group), now, job.cost)
    this.#place(group, now)
    this.#turn = --this.#turnLeft > 0 && group.ticket === priority ? group : null
  }

  /** A job that ran before its queue was grouped. */
  adopt(job: Job): void {
    this.#of(job).running++
  }

  /** A running job ends. */
  end(job: Job): void {
    this.#of(job).running--
  }

  /** Its start is given back to the rate. */
  giveBack(job: Job, now: number): void {
    const group = this.#of(job)
    group.throttle.giveBack(this.#rateOf(group), now, job.startedAt, job.cost)
  }

  pause(job: Job, now: number, length: number): void {
    this.#of(job).throttle.pause(now, length)
  }

  limit(name: string, limits: GroupLimits | null): void {
    this.#named(name).limits = limits ?? DEFAULT_GROUP_LIMITS
  }

  /** The queue's settings have changed. */
  touchAll(): void {
    for (const group of this.#groups.values()) this.#touched.add(group)
  }

  /** Milliseconds until the first group that a rate or pause holds may start a job; null: there is none. */
  heldFor(now: number): number | null {
    const first = this.#held.first
    return first === undefined ? null : first.heldUntil - now
  }

  /** The jobs of the job's group, in the order of claiming. */
  line(job: Job): Iterable<Job> {
    return this.#of(job).waiting.after(null)
  }

  /** In the order of priority and place. */
  *after(from: Cursor | null): Generator<Job> {
    const jobs = [...this.#groups.values()].flatMap(({ waiting }) => [...waiting.after(null)])
    for (const job of jobs.sort((a, b) => (byClaim(a, b) ? -1 : 1))) {
      if (from === null || job.priority < from.key || (job.priority === from.key && job.place > from.number)) yield job
    }
  }

  /** Of the first groups with waiting jobs. */
  oldestDue(): number | null {
    let oldest: number | null = null
    for (const { waiting } of this.#waiting()) {
      const due = waiting.oldestDue()
      if (due !== null) oldest = Math.min(oldest ?? due, due)
    }
    return oldest
  }

  /** Of the first groups with waiting jobs: how many wait for a slot of their own, and how many for their rate or a pause. */
  heldBack(now: number): Pick<HeldBack, 'groupsAtLimit' | 'groupsHeld'> {
    let groupsAtLimit = 0
    let groupsHeld = 0
    for (const group of this.#waiting()) {
      const wait = this.#startable(group, now)
      if (wait === null) groupsAtLimit++
      else if (wait > 0) groupsHeld++
    }
    return { groupsAtLimit, groupsHeld }
  }

  *#waiting(): Generator<Group> {
    let left = MAX_COUNTED
    for (const group of this.#groups.values()) {
      if (group.waiting.size === 0) continue
      yield group
      if (--left === 0) return
    }
  }

  /** In no order. @param only the group of this name */
  records(now: number, only?: string): GroupRecord[] {
    const groups = only === undefined ? [...this.#groups.values()] : [this.#groups.get(only) ?? []].flat()
    const shown = groups.filter(
      ({ waiting, running, limits }) => waiting.size > 0 || running > 0 || limits !== DEFAULT_GROUP_LIMITS,
    )
    return shown.map((group) => ({
      group: group.name,
      limits: group.limits === DEFAULT_GROUP_LIMITS ? null : group.limits,
      waiting: group.waiting.size,
      running: group.running,
      nextStart: this.#startable(group, now),
    }))
  }

  /** Forgets groups that have been idle for long enough. @returns how many, `limit` at most */
  forgetIdle(now: number, limit: number): number {
    let count = 0
    for (let group = this.#idle.first; count < limit && group && group.forgetAt <= now; group = this.#idle.first) {
      this.#withdraw(group)
      // To one that was touched since, something has happened: the next claim decides.
      if (this.#touched.has(group)) continue
      this.#groups.delete(group.name)
      count++
    }
    return count
  }

  /** Milliseconds until the group may start its first job; null: it waits for a slot, or no job waits. */
  #startable(group: Group, now: number): number | null {
    const first = group.waiting.first
    const running = group.limits.running ?? (group.name === '' ? null : this.#settings.groupRunning)
    if (first === null || (running !== null && group.running >= running)) return null
    return group.throttle.wait(this.#rateOf(group), now, first.cost)
  }

  /** @returns the priority at which the group had a ticket; -1: it had none */
  #withdraw(group: Group): number {
    const { ticket } = group
    group.heap?.remove(group)
    group.heap = null
    group.ticket = -1
    return ticket
  }

  #enter(heap: Heap<Group> | undefined, group: Group): void {
    if (heap === undefined) return
    heap.add(group)
    group.heap = heap
  }

  #place(group: Group, now: number): void {
    const had = this.#withdraw(group)
    const first = group.waiting.first
    if (first !== null) group.throttle.bound(this.#rateOf(group), now)
    const wait = this.#startable(group, now)
    if (first === null && group.running === 0 && group.limits === DEFAULT_GROUP_LIMITS) {
      group.forgetAt = Math.max(now + KEEP_IDLE, group.throttle.endsAt)
      this.#enter(this.#idle, group)
    }
    if (first === null || wait === null) return
    if (wait > 0) {
      group.heldUntil = now + wait
      this.#enter(this.#held, group)
      return
    }
    const { priority, place } = first
    const own = group.virtual[priority] ?? 0
    // A ticket that is new at its priority begins at the priority's virtual time: to wait or to idle earns no credit.
    group.virtualTime = had === priority ? own : Math.max(own, this.#virtual[priority] ?? 0)
    group.virtual[priority] = group.virtualTime
    group.ticket = priority
    group.place = place
    this.#enter(this.#tickets[priority], group)
  }

  #rateOf({ name, limits }: Group): Rate | null {
    return limits.rate ?? (name === '' ? null : this.#settings.groupRate)
  }

  #of(job: Job): Group {
    return this.#named(job.group ?? '')
  }

  /** Something happens to the group. */
  #named(name: string): Group {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new Group(name)
      this.#groups.set(name, group)
    }
    this.#touched.add(group)
    return group
  }
}
