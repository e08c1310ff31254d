/** What a push says about its key beyond "one live job": contract/operations.md, "Once for a while". */

import type { Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { Once } from '../../values/jobs/records.ts'
import { needs } from '../../values/operations/capabilities.ts'
import { checkOptions, defined, isBoolean, type Rules } from '../../values/options/options.ts'
import { type Duration, milliseconds } from '../../values/time/duration.ts'

/** What the key of a push does beyond "one live job". */
export interface OnceOptions {
  /**
   * The key is remembered for this long after its job was done or dead. A push meanwhile stores nothing and resolves to that job,
   * whose result `pond.result` gives while the job is kept. A cancel or a removal of the job forgets the key. 1 ms to 100 years.
   */
  for?: Duration | undefined
  /** From when `for` counts: the `end` of the job, unless set, or its `push`, which makes a throttle. */
  since?: 'end' | 'push' | undefined
  /**
   * A blocked, scheduled or waiting job with the key gets the data and the due time of this push: a debounce. It keeps its place and
   * all else. A running job is not replaced; the push resolves to it with `existing` and without `replaced`.
   */
  replace?: boolean | undefined
  /** However often it is replaced, the job is due no later than this long after its first push. Needs `replace`; 0 to 100 years. */
  maxWait?: Duration | undefined
  /**
   * `'follow'`: while the job with the key runs, this one is kept, and is due when that one ends. There is one such job per key; a
   * later push replaces its data and due time.
   */
  whenRunning?: 'follow' | undefined
}

const RULES: Rules<OnceOptions> = {
  for: (value) => milliseconds(value, 'for', 1) > 0,
  since: (value) => value === 'end' || value === 'push' || "'end' or 'push'",
  replace: isBoolean,
  maxWait: (value) => milliseconds(value, 'maxWait') >= 0,
  whenRunning: (value) => value === 'follow' || "'follow'",
}

/** Also of options that would do nothing. @throws InvalidOption, NotSupported */
export function checkOnce(
  given: { once?: OnceOptions | undefined; key?: string | undefined },
  store: Store,
  where: string,
): void {
  if (given.once === undefined) return
  const once = checkOptions(given.once, RULES, `once of ${where}`)
  if (given.key === undefined) throw invalid(`${where}: once needs a key`)
  if (once.since !== undefined && once.for === undefined) throw invalid(`once of ${where}: since needs for`)
  if (once.maxWait !== undefined && once.replace !== true) {
    throw invalid(`once of ${where}: maxWait needs replace: true`)
  }
  needs(store, 'once', 'once')
}

/** As the store takes it. */
export function onceFrom(given: OnceOptions): { once?: Once } {
  const { for: time, since = 'end', replace, maxWait, whenRunning } = given
  const once = defined({
    unique: time === undefined ? undefined : { for: milliseconds(time, 'for', 1), since },
    replace: replace === true ? true : undefined,
    maxWait: maxWait === undefined ? undefined : milliseconds(maxWait, 'maxWait'),
    follow: whenRunning === 'follow' ? true : undefined,
  })
  return Object.keys(once).length === 0 ? {} : { once }
}

const invalid = (message: string) => new MillpondError('InvalidOption', message)
