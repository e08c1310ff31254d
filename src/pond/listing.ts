/** Lists of a queue's jobs, as callers ask for them. */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { JOB_STATES, type JobState } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import { checkCursor } from '../values/operations/cursor.ts'
import { type DataMatch, dataFilter } from '../values/operations/data-filter.ts'
import type { JobFilter, ListedRecord } from '../values/operations/requests.ts'
import { checkOptions, defined, isInteger, type Rules } from '../values/options/options.ts'
import { checkKey } from '../values/settings/names.ts'
import { shown } from '../values/time/duration.ts'
import { timeOf } from './push/options.ts'

export interface PageOptions {
  /** Most entries of a page; 1 to 1,000, 100 unless given. */
  limit?: number | undefined
  /** Where the page before ended; see the method. Unset: the first page. */
  after?: string | undefined
}

/** Which jobs. All of the filters hold that are given; unset: no filter. */
export interface FilterOptions {
  /** Only jobs of this group; the empty text: jobs without a group. */
  group?: string | undefined
  /** Only jobs with this key. */
  key?: string | undefined
  /** Only jobs whose last error has this code, such as `HandlerFailed`. */
  errorCode?: string | undefined
  /** Only jobs whose last error has this text in its message; upper and lower case count. */
  errorText?: string | undefined
  /** Only jobs pushed at this time or later: a Date, or milliseconds since 1970. */
  pushedFrom?: Date | number | undefined
  /** Only jobs pushed before this time: a Date, or milliseconds since 1970. */
  pushedBefore?: Date | number | undefined
  /** Only jobs with this text in their data as stored, if those are JSON. Needs the capability `text`. */
  text?: string | undefined
  /**
   * Only jobs with this value at this place in their data, if those are JSON: `{ path: ['user', 'id'], value: 7 }` or
   * `'user.id=7'`. Names lead through objects, not through arrays. The text `7` and the number are both found. Needs the
   * capability `text`.
   */
  data?: DataMatch | undefined
}

/** A page of jobs, of those that pass the filters. */
export interface JobsOptions extends PageOptions, FilterOptions {}

const isText = (value: unknown): boolean | string => (typeof value === 'string' && value !== '') || 'a text'
const isTime = (value: unknown): boolean | string =>
  timeOf(value) !== undefined || 'a valid Date, or milliseconds since 1970'

export const PAGE_RULES: Rules<PageOptions> = {
  limit: isInteger(1, 1000),
  after: (value) => typeof value === 'string' || 'the end of the page before',
}
export const FILTER_RULES: Rules<FilterOptions> = {
  group: (value) => value === '' || checkKey(value, 'group') !== '',
  key: (value) => checkKey(value, 'key') !== '',
  errorCode: isText,
  errorText: isText,
  pushedFrom: isTime,
  pushedBefore: isTime,
  text: isText,
  data: (value) => dataFilter(value).path.length > 0,
}
const JOBS_RULES: Rules<JobsOptions> = {
  ...PAGE_RULES,
  after: (value) => typeof value === 'string' || 'the cursor of a job',
  ...FILTER_RULES,
}

/** A list, as the store is asked for it. */
export interface JobsQuery {
  queue: string
  state: JobState
  limit: number
  after: string | undefined
  filter: JobFilter
}

/** @throws InvalidOption, NotSupported */
export function jobsQuery(store: Store, queue: string, state: JobState, options: JobsOptions): JobsQuery {
  const { limit = 100, after, ...filters } = checkOptions(options, JOBS_RULES, 'jobs')
  if (!JOB_STATES.includes(state)) {
    throw new MillpondError('InvalidOption', `state is one of ${JOB_STATES.join(', ')}; got ${shown(state)}`)
  }
  if (after !== undefined) checkCursor(state, after)
  needs(store, 'lists', 'jobs')
  return { queue, state, limit, after, filter: filterOf(store, filters) }
}

/** @throws NotSupported */
export function filterOf(store: Store, { pushedFrom, pushedBefore, data, ...texts }: FilterOptions): JobFilter {
  if (texts.text !== undefined) needs(store, 'text', 'the filter text')
  if (data !== undefined) needs(store, 'text', 'the filter data')
  const place = data === undefined ? undefined : dataFilter(data)
  return defined({ ...texts, data: place, pushedFrom: timeOf(pushedFrom), pushedBefore: timeOf(pushedBefore) })
}

/**
 * Asks the store until there are `limit` jobs or the list ends. A call of the store looks at a bounded number of jobs,
 * so a rare filter takes many.
 */
export async function listJobs(store: Store, { limit, after: from, ...query }: JobsQuery): Promise<ListedRecord[]> {
  const jobs: ListedRecord[] = []
  let after = from
  for (;;) {
    const page = await store.operations.list({ ...query, limit: limit - jobs.length, ...defined({ after }) })
    for (const job of page.jobs) jobs.push(job)
    if (jobs.length >= limit || page.next === null) return jobs
    after = page.next
  }
}
