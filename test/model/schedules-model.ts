/** What the contract says of schedules, in the plainest way: contract/schedules.md. */
import type {
  Declaration,
  DeclareOutcome,
  FireOutcome,
  Firing,
  ScheduleRecord,
} from '../../src/values/schedules/records.ts'

const DECLARED = 90_000
const MOST_FORMER = 16

interface Kept extends ScheduleRecord {
  seenAt: number
  former: string[]
}

export class SchedulesModel {
  now = 0
  pushed = 0
  /** Of the one queue; null: any number. */
  capacity: number | null = null
  /** Jobs that wait. */
  waiting = 0
  /** Whether a schedule that was declared before and that the store neither knows nor removed is made again, as on Redis. */
  makesLostAgain = false
  readonly #kept = new Map<string, Kept>()
  readonly #removed = new Set<string>()

  declare({ again, ...given }: Declaration): DeclareOutcome {
    const { now } = this
    const was = this.#kept.get(given.name)
    const fresh = { planned: false, nextAt: now }
    const seen = { changedAt: now, seenAt: now, declared: true }
    if (was === undefined) {
      if (again && !(this.makesLostAgain && !this.#removed.has(given.name))) return 'unknown'
      this.#removed.delete(given.name)
      this.#kept.set(given.name, { ...given, ...fresh, ...seen, lastAt: null, former: [] })
      return 'created'
    }
    if (was.version === given.version) {
      was.seenAt = now
      return 'same'
    }
    if (was.former.includes(given.version) && now - was.seenAt < DECLARED) return 'kept'
    const sameTimes = (['when', 'tz', 'from', 'until'] as const).every((name) => was[name] === given[name])
    const isDue = was.planned && was.nextAt !== null && was.nextAt <= now
    const plan = sameTimes || isDue ? { planned: was.planned, nextAt: was.nextAt } : fresh
    const former = [was.version, ...was.former.filter((version) => version !== given.version)].slice(0, MOST_FORMER)
    this.#kept.set(given.name, { ...given, ...seen, ...plan, paused: was.paused, lastAt: was.lastAt, former })
    return 'changed'
  }

  list(): ScheduleRecord[] {
    return [...this.#kept.values()]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ seenAt, former: _, ...record }) => ({ ...record, declared: this.now - seenAt < DECLARED }))
  }

  pause(name: string, paused: boolean): boolean {
    const kept = this.#kept.get(name)
    if (kept === undefined) return false
    if (kept.paused && !paused) Object.assign(kept, { planned: false, nextAt: this.now })
    kept.paused = paused
    return true
  }

  remove(name: string): boolean {
    this.#removed.add(name)
    return this.#kept.delete(name)
  }

  sweep(): { due: ScheduleRecord[]; nextDue: number | null } {
    const timed = this.list().filter(({ paused, nextAt }) => !paused && nextAt !== null)
    const at = ({ nextAt }: ScheduleRecord) => nextAt ?? 0
    const due = timed.filter((each) => at(each) <= this.now).sort((a, b) => at(a) - at(b))
    const next = Math.min(...timed.filter((each) => at(each) > this.now).map(at))
    return { due, nextDue: Number.isFinite(next) ? next - this.now : null }
  }

  fire({ name, version, expected, next, jobs }: Firing): FireOutcome {
    const kept = this.#kept.get(name)
    if (kept === undefined || kept.paused || kept.version !== version || kept.nextAt !== expected)
      return { status: 'stale' }
    if (this.capacity !== null && jobs.length > 0 && this.capacity - this.waiting < jobs.length)
      return { status: 'full' }
    Object.assign(kept, { planned: true, nextAt: next, ...(jobs.length > 0 && { lastAt: this.now }) })
    this.waiting += jobs.length
    this.pushed += jobs.length
    return { status: 'fired', jobs: jobs.map(({ id }) => ({ status: 'pushed', id })) }
  }
}
