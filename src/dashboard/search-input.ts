/** Searches and filters, as the page sends them. */
import { type JobsQuery, jobsQuery } from '../pond/listing.ts'
import type { Store } from '../store.ts'
import { JOB_STATES, type JobState } from '../values/jobs/records.ts'
import { dataFilter } from '../values/operations/data-filter.ts'
import { defined, type Rules } from '../values/options/options.ts'
import { Refusal } from '../web/problem.ts'
import type { Redaction } from './redact.ts'
import type { May, Search } from './views.ts'

const isState = (value: unknown): value is JobState => JOB_STATES.some((state) => state === value)
const isText = (value: unknown) =>
  (typeof value === 'string' && value.length <= 1000) || 'a text of at most 1,000 characters'
const isTime = (value: unknown) => (Number.isSafeInteger(value) && Number(value) >= 0) || 'milliseconds since 1970'

/** The library checks the rest. */
export const SEARCH_RULES: Rules<Search> = {
  state: (value) => isState(value) || `one of ${JOB_STATES.join(', ')}`,
  group: isText,
  key: isText,
  errorCode: isText,
  errorText: isText,
  pushedFrom: isTime,
  pushedBefore: isTime,
  text: isText,
  data: (value) => dataFilter(value).path.length > 0,
}

/** @throws Refusal: 403; MillpondError */
export function searchQuery(
  store: Store,
  queue: string,
  search: Search & { after?: string; limit?: number },
  allowed: { may: May; redaction: Redaction },
): JobsQuery {
  mayAsk(search, allowed)
  const { state, after, limit = 50, ...filter } = search
  return jobsQuery(store, queue, state, defined({ ...filter, after, limit }))
}

/** Whoever may not see a text may not find out by searching for it, either. @throws Refusal: 403 */
export function mayAsk(
  { text, errorText, data }: Search,
  { may, redaction }: { may: May; redaction: Redaction },
): void {
  if (text === undefined && errorText === undefined && data === undefined) return
  if (!may.payloads) throw new Refusal(403, 'You may not see payloads and errors of this queue, nor search in them.')
  if (text !== undefined && !redaction.at('data').isEmpty) {
    throw new Refusal(403, 'Parts of the payloads are not shown here, so they cannot be searched for a text.')
  }
  if (data !== undefined && isHidden(dataFilter(data).path, redaction.at('data'))) {
    throw new Refusal(403, 'This part of the payloads is not shown here, so it cannot be searched.')
  }
}

/** Whether a value of this place, or one that it is a part of, is never shown. */
function isHidden([name, ...rest]: readonly string[], redaction: Redaction): boolean {
  return redaction.hides || (name !== undefined && isHidden(rest, redaction.at(name)))
}
