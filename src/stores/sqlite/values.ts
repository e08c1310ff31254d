/** What SQLite takes and gives, and guards that turn its columns into typed values without a cast. */

export type Value = null | number | bigint | string | Uint8Array
export type Row = Record<string, unknown>

function unexpected(value: unknown, wanted: string): never {
  throw new TypeError(`millpond: a column held ${value === null ? 'null' : typeof value} where ${wanted} was expected`)
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : unexpected(value, 'text')
}

/** A connection of the caller's may be set to read integers as bigint. */
export function integer(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'bigint' ? Number(value) : unexpected(value, 'an integer')
}

export function number(value: unknown): number {
  return typeof value === 'number' ? value : unexpected(value, 'a number')
}

export function textOrNull(value: unknown): string | null {
  return value === null ? null : text(value)
}

export function integerOrNull(value: unknown): number | null {
  return value === null ? null : integer(value)
}

/** Of a flat message or a row: what can be bound again as it is. */
export function bindable(value: unknown): Value {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
    return value
  return value instanceof Uint8Array ? value : unexpected(value, 'something that SQLite can store')
}
