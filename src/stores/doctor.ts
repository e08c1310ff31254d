/**
 * Looks at a store from outside: whether its server, its settings and its tables keep what was acknowledged. Each store
 * has a `doctor.ts` of its own. It opens connections of its own and changes nothing, so that it also sees a store which cannot be opened.
 */
import { MillpondError } from '../values/errors.ts'

/** What a check found. */
export interface Finding {
  /** Names the check, for programs. */
  check: string
  /**
   *   ok       it was looked at, and is well
   *   note     worth knowing; nothing is wrong
   *   warning  may become a problem, or costs something
   *   problem  jobs may be lost, or nothing works
   *   unseen   it could not be looked at: the text says why
   */
  level: 'ok' | 'note' | 'warning' | 'problem' | 'unseen'
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

interface Doctor {
  examine: Examine
  schemaState(url: string): Promise<SchemaState>
}

const DOCTORS: Record<string, () => Promise<Doctor>> = {
  sqlite: () => import('./sqlite/doctor.ts'),
  redis: () => import('./redis/doctor.ts'),
  rediss: () => import('./redis/doctor.ts'),
  'redis+sentinel': () => import('./redis/doctor.ts'),
  'rediss+sentinel': () => import('./redis/doctor.ts'),
  postgres: () => import('./postgres/doctor.ts'),
  postgresql: () => import('./postgres/doctor.ts'),
}

/** @throws UnknownScheme, and as the store's own */
async function doctorOf(url: string): Promise<Doctor> {
  const scheme = url.slice(0, Math.max(0, url.indexOf(':'))).toLowerCase()
  const load = Object.hasOwn(DOCTORS, scheme) ? DOCTORS[scheme] : undefined
  if (load !== undefined) return load()
  const known = Object.keys(DOCTORS).map((name) => `${name}:`)
  throw new MillpondError('UnknownScheme', `only a store that lasts can be looked at: ${known.join(', ')}`)
}

/** @throws UnknownScheme, InvalidOption, DriverMissing, `Store…` */
export async function examineStore(url: string): Promise<Finding[]> {
  return (await doctorOf(url)).examine(url)
}

/** @throws as `examineStore` */
export async function schemaState(url: string): Promise<SchemaState> {
  return (await doctorOf(url)).schemaState(url)
}

/** A check that fails, as for want of a right, must not hide the others. */
export async function looked(
  check: string,
  look: () => Finding[] | Promise<Finding[]>,
  why: (error: unknown) => string,
): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    return [{ check, level: 'unseen', text: why(error) }]
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
