/** What SQLite takes and gives, and guards that turn its columns into typed values without a cast. */
import { JOB_STATES, type JobState } from '../../../store.ts'

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
  return typeof value === 'bigint' ? Number(value) : unexpected(value, 'a number')
}

export function textOrNull(value: unknown): string | null {
  return value === null ? null : text(value)
}

/** Undefined, as of a row that is not there, counts as null. */
export function integerOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : integer(value)
}

export function stateFrom(value: unknown): JobState {
  return JOB_STATES.find((known) => known === value) ?? unexpected(value, 'a state of a job')
}
