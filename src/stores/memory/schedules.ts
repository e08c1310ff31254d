import type { Declaration, DeclareOutcome, Firing, ScheduleRecord } from '../../values/schedules/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { copyEncoded } from '../jobs.ts'

const { declared: STILL_DECLARED, versions: MOST_FORMER, due: MOST_DUE } = DEFAULTS.schedule

interface Kept extends Omit<ScheduleRecord, 'declared'> {
  /** When it was last declared. */
  seenAt: number
  /** Versions that were replaced, the latest first. */
  former: string[]
}

/** The schedules by name. Times are milliseconds since 1970. */
export class Schedules {
  readonly #kept = new Map<string, Kept>()

  declare({ again, ...declared }: Declaration, now: number): DeclareOutcome {
    const kept = this.#kept.get(declared.name)
    if (kept === undefined) {
      if (again) return 'unknown'
      this.#kept.set(declared.name, {
        ...declared,
        job: copied(declared.job),
        ...seen(now),
        ...unplanned(now),
        lastAt: null,
        former: [],
      })
      return 'created'
    }
    if (kept.version === declared.version) {
      kept.seenAt = now
      return 'same'
    }
    if (kept.former.includes(declared.version) && kept.seenAt + STILL_DECLARED > now) return 'kept'
    const former = [kept.version, ...kept.former.filter((version) => version !== declared.version)].slice(
      0,
      MOST_FORMER,
    )
    const { paused, lastAt, planned, nextAt } = kept
    // A time that is due already fires first.
    const stays = hasTimesOf(kept, declared) || (planned && nextAt !== null && nextAt <= now)
    const plan = stays ? { planned, nextAt } : unplanned(now)
    const changed = { ...declared, job: copied(declared.job), ...seen(now), ...plan }
    this.#kept.set(declared.name, { ...changed, paused, lastAt, former })
    return 'changed'
  }

  list(after: string | undefined, name: string | undefined, now: number): ScheduleRecord[] {
    return [...this.#kept.values()]
      .filter((each) => (after === undefined || each.name > after) && (name === undefined || each.name === name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((each) => recordOf(each, now))
  }

  /** @returns the next time of any that is not due, and the records of those due, longest due first */
  due(now: number): { nextAt: number | null; due: ScheduleRecord[] } {
    let nextAt: number | null = null
    const due: (Kept & { nextAt: number })[] = []
    for (const each of this.#kept.values()) {
      if (!isTimed(each) || each.paused) continue
      if (each.nextAt <= now) due.push(each)
      else nextAt = Math.min(nextAt ?? each.nextAt, each.nextAt)
    }
    due.sort((a, b) => a.nextAt - b.nextAt || (a.name < b.name ? -1 : 1))
    return { nextAt, due: due.slice(0, MOST_DUE).map((each) => recordOf(each, now)) }
  }

  isAt({ name, version, expected }: Firing): boolean {
    const kept = this.#kept.get(name)
    return kept !== undefined && !kept.paused && kept.version === version && kept.nextAt === expected
  }

  fired({ name, next, jobs }: Firing, now: number): void {
    const kept = this.#kept.get(name)
    if (kept === undefined) return
    kept.planned = true
    kept.nextAt = next
    if (jobs.length > 0) kept.lastAt = now
  }

  pause(name: string, paused: boolean, now: number): boolean {
    const kept = this.#kept.get(name)
    if (kept === undefined) return false
    // One that goes on already must not skip a time.
    if (kept.paused && !paused) Object.assign(kept, unplanned(now))
    kept.paused = paused
    return true
  }

  remove(name: string): boolean {
    return this.#kept.delete(name)
  }
}

const seen = (now: number) => ({ changedAt: now, seenAt: now })

const unplanned = (now: number) => ({ planned: false, nextAt: now })

const hasTimesOf = (one: Declaration | Kept, other: Omit<Declaration, 'again'>): boolean =>
  one.when === other.when && one.tz === other.tz && one.from === other.from && one.until === other.until

const isTimed = (kept: Kept): kept is Kept & { nextAt: number } => kept.nextAt !== null

const copied = (job: ScheduleRecord['job']): ScheduleRecord['job'] => ({ ...job, data: copyEncoded(job.data) })

function recordOf({ former: _, seenAt, ...record }: Kept, now: number): ScheduleRecord {
  return { ...record, job: copied(record.job), declared: seenAt + STILL_DECLARED > now }
}
