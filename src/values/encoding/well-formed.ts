/**
 * Text that is no Unicode: half of a surrogate pair, such as a cut emoji. JSON can write it (`"\ud83d"`), UTF-8 and MessagePack cannot, and
 * strict parsers refuse the whole document around it. So it is neither stored nor handed out.
 */

import { types } from 'node:util'

/** Most characters of a path that are shown; the path is made of the payload's own names. */
const LONGEST_PATH = 200

/** Whether JSON text may escape half of a pair. Most texts escape nothing of the kind, and need no walk. */
export const mayEscapeHalf = (json: string): boolean => json.includes('\\u') && /\\u[dD]/.test(json)

/** The path to the first ill-formed text or name, such as `items.0.title`; empty: the value itself; undefined: there is none. */
export const illFormedAt = (value: unknown): string | undefined => pathTo(value, (text) => !text.isWellFormed())

/** The path to the first text or name for which this holds. */
export function pathTo(value: unknown, holds: (text: string) => boolean): string | undefined {
  const path = partsTo(value, holds)
  if (path === undefined) return undefined
  const text = path.map((part) => String(part).toWellFormed()).join('.')
  return text.length <= LONGEST_PATH ? text : `${text.slice(0, LONGEST_PATH).toWellFormed()}…`
}

function partsTo(value: unknown, holds: (text: string) => boolean): (string | number)[] | undefined {
  if (typeof value === 'string') return holds(value) ? [] : undefined
  if (typeof value !== 'object' || value === null || types.isUint8Array(value)) return undefined
  for (const [key, item] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    if (typeof key === 'string' && holds(key)) return [key]
    const below = partsTo(item, holds)
    if (below !== undefined) return [key, ...below]
  }
  return undefined
}
