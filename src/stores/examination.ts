/** What the doctors of all stores share: what a check finds, and checks that are alike. */
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

/** What a check found. */
export interface Finding {
  /** Names the check, for programs. */
  check: string
  /**
   *   ok       it was looked at, and is well
   *   note     worth knowing; nothing is wrong
   *   warning  may become a problem, or costs something
   *   problem  jobs may be lost, or nothing works, or it could not be looked at
   */
  level: 'ok' | 'note' | 'warning' | 'problem'
  text: string
  /** What to do; with a warning or a problem. */
  action?: string
}

/** @throws StoreUnavailable, InvalidOption: there is nothing to look at */
export type Examine = (url: string) => Promise<Finding[]>

/** What a migration would do, or has done. Versions are those of the tables or keys; 0: there are none. */
export interface SchemaState {
  found: number
  /** The one that this release makes. */
  newest: number
  /** Whether opening the store changes something in it. */
  isCurrent: boolean
}

/** A check that fails, as for want of a right, must not hide the others, nor pass for one that found nothing. */
export async function looked(
  check: string,
  look: () => Finding[] | Promise<Finding[]>,
  why: (error: unknown) => string,
): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    const text = `could not be looked at: ${why(error)}`
    return [{ check, level: 'problem', text, action: 'do what the message says, or use a role that may look' }]
  }
}

/** How far the server's clock may be from ours, in ms. */
const MOST_APART = 1000

/**
 * Times are the store's, but dates that programs give (`runAt`) and show are theirs.
 * @param asked milliseconds since 1970 before and after the server told its own
 */
export function clockFinding(server: number, asked: readonly [before: number, after: number]): Finding {
  const [before, after] = asked
  const apart = server < before ? before - server : Math.max(0, server - after)
  const text = `the server's clock is ${Math.round(apart)} ms ${server < before ? 'behind' : 'ahead of'} that of this machine`
  if (apart <= MOST_APART)
    return { check: 'clock', level: 'ok', text: "the server's clock agrees with that of this machine" }
  const action = 'run NTP on both: jobs with a runAt come due by the clock of the server'
  return { check: 'clock', level: 'warning', text, action }
}

/** A lease that is over for longer than this is stuck, in ms: a sweep ends lost ones within seconds. */
export const STUCK = DEFAULTS.store.workerSilence

/** @param count of running jobs whose lease is over for longer than STUCK */
export function leaseFinding(count: number): Finding {
  if (count === 0) return { check: 'leases', level: 'ok', text: 'no lease is over for long' }
  const jobs = count === 1 ? 'one running job has' : `${count} running jobs have`
  const text = `${jobs} a lease that is long over, and nobody gives it back`
  return {
    check: 'leases',
    level: 'problem',
    text,
    action: 'start a worker of any queue: processes with workers sweep',
  }
}

/** Of more jobs the counts are not compared with the rows: it would read them all. */
export const MOST_COUNTED = 1_000_000
/** Queues and states that a finding names. */
const SHOWN = 3

/** A count that differs from the jobs that are there. */
export interface Miscount {
  queue: string
  state: string
  counted: number
  there: number
}

/** @param action makes them right */
export function countFindings(wrong: readonly Miscount[], action: (of: Miscount) => string): Finding[] {
  if (wrong.length === 0) return [{ check: 'counts', level: 'ok', text: 'the counts are those of the jobs' }]
  const more = wrong.length > SHOWN ? `; so are ${wrong.length - SHOWN} other counts` : ''
  return wrong.slice(0, SHOWN).map((of, at) => ({
    check: 'counts',
    level: 'problem',
    text: `${of.queue}: ${of.counted} ${of.state} jobs are counted, and there are ${of.there}${at === SHOWN - 1 ? more : ''}`,
    action: action(of),
  }))
}

/** They were not looked at, for the sake of those who use the store. */
export const notCounted = (action: string): Finding[] => [
  { check: 'counts', level: 'note', text: 'there are too many jobs to count them here', action },
]
