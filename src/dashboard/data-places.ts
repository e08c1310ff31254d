/** Places in the data of some jobs, to be offered while somebody types a search. */

import { jobInfo } from '../values/jobs/job.ts'
import type { JobRecord } from '../values/jobs/records.ts'
import { sizeOf } from './payload.ts'
import type { Redaction } from './redact.ts'

/** Jobs that are looked at, the largest of them, levels, and places. */
const JOBS = 3
const MOST_BYTES = 20_000
const LEVELS = 4
const MOST = 30

/** Such as `user.id`. What the box cannot tell apart, and what is never shown, is left out. */
export function placesIn(records: readonly JobRecord[], redaction: Redaction): string[] {
  const found = new Set<string>()
  const add = (value: unknown, path: readonly string[], hidden: Redaction): void => {
    if (hidden.hides || found.size >= MOST || Array.isArray(value)) return
    if (typeof value !== 'object' || value === null) {
      if (path.length > 0) found.add(path.join('.'))
      return
    }
    if (path.length >= LEVELS) return
    for (const [name, item] of Object.entries(value)) {
      if (/^[^\s.:"]{1,40}$/.test(name) && name.isWellFormed()) add(item, [...path, name], hidden.at(name))
    }
  }
  const small = records.filter(({ data }) => data.encoding === 'json' && sizeOf(data) <= MOST_BYTES)
  for (const record of small.slice(0, JOBS)) add(jobInfo(record).data, [], redaction.at('data'))
  return [...found]
}
