/**
 * Where a page of a list ends. A store puts into it all that its order needs, so that the next page begins there even
 * if the job has moved on or is gone: the state, then fields of the store's own, joined by dots. Callers only hand it
 * back.
 */

import { MillpondError } from '../errors/errors.ts'
import type { JobState } from '../jobs/records.ts'

const FORM = /^[a-z]+(\.[0-9a-f-]{1,40}){2,12}$/

export const cursorOf = (state: JobState, ...fields: readonly (number | string)[]): string =>
  [state, ...fields].join('.')

/** @returns its fields; undefined: of another form, or of a list of another state */
export function cursorFields(state: JobState, cursor: string): string[] | undefined {
  const [own, ...fields] = cursor.split('.')
  return own === state && FORM.test(cursor) ? fields : undefined
}

/** @throws InvalidOption */
export function checkCursor(state: JobState, after: string): void {
  if (cursorFields(state, after) !== undefined) return
  const message = `after is the \`cursor\` of the last job of the page before, from a list of ${state} jobs`
  throw new MillpondError('InvalidOption', message)
}

/** The first so many fields of a cursor as numbers; `first`: those before every job, for the first page. */
export function cursorNumbers(
  state: JobState,
  cursor: string | undefined,
  first: readonly number[],
): readonly number[] {
  const fields = cursor === undefined ? undefined : cursorFields(state, cursor)
  return fields === undefined ? first : first.map((_, index) => Number(fields[index]))
}
