/** What a push says about its key beyond "one live job": contract/operations.md, "Once for a while". */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Once, Unique } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import { defined, isBoolean, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'

export interface OnceOptions {
  /**
   * The key is remembered for this long after its job was done or dead. A push meanwhile stores nothing and resolves to that job,
   * whose result `pond.result` gives while the job is kept. With `since: 'push'` the time runs from the push: a throttle. A cancel
   * or a removal of the job forgets the key. Needs `key`; 1 ms to 100 years.
   */
  unique?: Duration | { for: Duration; since?: 'end' | 'push' | undefined } | undefined
  /**
   * A blocked, scheduled or waiting job with the key gets the data and the due time of this push: a debounce. It keeps its place and
   * all else. A running job is not replaced; the push resolves to it with `existing` and without `replaced`. Needs `key`.
   */
  replace?: boolean | undefined
  /** However often it is replaced, the job is due no later than this long after its first push. Needs `replace`; 0 to 100 years. */
  maxWait?: Duration | undefined
  /**
   * `'follow'`: while the job with the key runs, this one is kept, and is due when that one ends. There is one such job per key; a
   * later push replaces its data and due time. Needs `key`.
   */
  whenRunning?: 'follow' | undefined
}

export const ONCE_RULES: Rules<OnceOptions> = {
  unique: (value) => uniqueOf(value).for > 0,
  replace: isBoolean,
  maxWait: (value) => milliseconds(value, 'maxWait') >= 0,
  whenRunning: (value) => value === 'follow' || "'follow'",
}
const NAMES = ['unique', 'replace', 'maxWait', 'whenRunning'] as const

/** @throws InvalidOption */
function uniqueOf(value: unknown): Unique {
  if (typeof value !== 'object' || value === null) return { for: milliseconds(value, 'unique', 1), since: 'end' }
  const { for: time, since = 'end', ...others } = value as { [name: string]: unknown }
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(`unique has no ${unknown}; it takes for and since`)
  if (since !== 'end' && since !== 'push') throw invalid("since of unique must be 'end' or 'push'")
  return { for: milliseconds(time, 'unique.for', 1), since }
}

/** Options that would do nothing. @throws InvalidOption, NotSupported */
export function checkOnce(given: OnceOptions & { key?: string | undefined }, store: Store, where: string): void {
  const name = NAMES.find((one) => given[one] !== undefined)
  if (name === undefined) return
  if (given.key === undefined) throw invalid(`${where}: ${name} needs a key`)
  if (given.maxWait !== undefined && given.replace !== true) throw invalid(`${where}: maxWait needs replace: true`)
  needs(store, 'once', name)
}

/** As the store takes it. */
export function onceFrom({ unique, replace, maxWait, whenRunning }: OnceOptions): { once?: Once } {
  const once = defined({
    unique: unique === undefined ? undefined : uniqueOf(unique),
    replace: replace === true ? true : undefined,
    maxWait: maxWait === undefined ? undefined : milliseconds(maxWait, 'maxWait'),
    follow: whenRunning === 'follow' ? true : undefined,
  })
  return Object.keys(once).length === 0 ? {} : { once }
}

const invalid = (message: string) => new MillpondError('InvalidOption', message)
