/** What a store takes as options: in code, or in the query of its URL. */

import { MillpondError } from '../values/errors/errors.ts'
import { didYouMean } from '../values/options/did-you-mean.ts'
import { shownName } from '../values/options/options.ts'
import { shown } from '../values/time/duration.ts'

export function invalid(message: string): never {
  throw new MillpondError('InvalidOption', message)
}

/**
 * @param query names in the URL's query
 * @param by whose options they are, for messages
 * @throws InvalidOption for a name that is not known
 */
export function checkNames(
  { clock: _, ...options }: Readonly<Record<string, unknown>>,
  query: Iterable<string>,
  known: readonly string[],
  by: string,
): void {
  for (const name of [...query, ...Object.keys(options)]) {
    if (known.includes(name)) continue
    const hint = didYouMean(name, known)
    invalid(`unknown option ${shownName(name)}: ${by} takes ${known.join(', ') || 'none'}${hint}`)
  }
}

/** What the code says beats what the URL says: the URL is often shared between programs. */
export const optionIn =
  <Name extends string>(options: Readonly<Record<string, unknown>>, query: URLSearchParams) =>
  (name: Name): unknown =>
    options[name] ?? query.get(name) ?? undefined

/** A whole number, also as text. @throws InvalidOption */
export function wholeNumber(
  name: string,
  value: unknown,
  [fallback, least, most]: readonly [number, number, number],
): number {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : (value ?? fallback)
  if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most) return number
  return invalid(`${name} must be a whole number from ${least} to ${most}, not ${shown(value)}`)
}
