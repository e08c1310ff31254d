/** A value at a place in data: contract/operations.md, `list`. */
import { MillpondError } from '../errors/errors.ts'
import type { DataFilter } from './requests.ts'

/** Where in the data, and what: names that lead through objects; or as a text, `user.id=7`. */
export type DataMatch = string | { path: readonly string[]; value: string | number | boolean | null }

const MOST_NAMES = 20
const MOST_NAME = 255
const MOST_VALUE = 1000

/** @throws InvalidOption; it does not show the value, which may be a part of a payload */
export function dataFilter(given: unknown): DataFilter {
  const { path, value } = typeof given === 'string' ? parsed(given) : partsOf(given)
  const isName = (name: unknown) =>
    typeof name === 'string' && name !== '' && name.length <= MOST_NAME && name.isWellFormed()
  const isPath = Array.isArray(path) && path.length > 0 && path.length <= MOST_NAMES && path.every(isName)
  const isValue = value === null || ['string', 'number', 'boolean'].includes(typeof value)
  const text = String(value)
  if (isPath && isValue && text.length <= MOST_VALUE && text.isWellFormed()) return { path, value: text }
  throw new MillpondError(
    'InvalidOption',
    "data is such as 'user.id=7', or { path: ['user', 'id'], value: 7 }: 1 to 20 names, and a text, a number, true, false or null",
  )
}

function parsed(text: string): { path: unknown; value: unknown } {
  const at = text.indexOf('=')
  return at < 0
    ? { path: undefined, value: undefined }
    : { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }
}

function partsOf(given: unknown): { path: unknown; value: unknown } {
  if (typeof given !== 'object' || given === null) return { path: undefined, value: undefined }
  return { path: 'path' in given && given.path, value: 'value' in given ? given.value : undefined }
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/

/** The number that a text is, as JSON writes it; null: it is none. */
export function numberIn(text: string): number | null {
  return NUMBER.test(text) ? Number(text) : null
}

/** @param body JSON, as a producer has stored it: it need not be well-formed */
export function dataHas(body: string, { path, value }: DataFilter): boolean {
  try {
    let at: unknown = JSON.parse(body)
    for (const name of path) {
      if (typeof at !== 'object' || at === null || Array.isArray(at) || !Object.hasOwn(at, name)) return false
      at = (at as Record<string, unknown>)[name]
    }
    if (typeof at === 'string') return at === value
    if (typeof at === 'number') return at === numberIn(value)
    return (typeof at === 'boolean' || at === null) && String(at) === value
  } catch {
    return false
  }
}
