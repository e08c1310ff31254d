/** What SQLite takes and gives, and guards that turn its columns into typed values without a cast. */
import { JOB_STATES, type JobState } from '../../../values/jobs/records.ts'

export type Value = null | number | bigint | string | Uint8Array
export type Row = Readonly<Record<string, Value>>

export const isRow = (row: unknown): row is Row => typeof row === 'object' && row !== null

/** Of a row that may not be there. */
export const columnOf = (row: unknown, name: string): unknown => (isRow(row) ? row[name] : undefined)

function unexpected(value: unknown, wanted: string): never {
  throw new TypeError(`millpond: a column held ${value === null ? 'null' : typeof value} where ${wanted} was expected`)
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : unexpected(value, 'text')
}

/** A connection of the caller's may be set to read integers as bigint. */
export function integer(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'bigint' ? Number(value) : unexpected(value, 'a number')
}

export const flag = (value: unknown): boolean => integer(value) === 1

/** Undefined, as of a row that is not there, counts as null. */
const orNull =
  <T>(read: (value: unknown) => T) =>
  (value: unknown): T | null =>
    value === null || value === undefined ? null : read(value)

export const textOrNull = orNull(text)
export const integerOrNull = orNull(integer)

export function stateFrom(value: unknown): JobState {
  return JOB_STATES.find((known) => known === value) ?? unexpected(value, 'a state of a job')
}
