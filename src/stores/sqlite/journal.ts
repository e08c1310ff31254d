/** The journal of a job: contract/sqlite/journal.sql. */
import type { JobRecord, NewEntry } from '../../values/jobs/records.ts'
import { entryBytes, isSignal } from '../../values/jobs/step-names.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import type { Statements } from './connection/statements.ts'
import { integer, integerOrNull, type Row, textOrNull } from './connection/values.ts'

const { entries: MAX_ENTRIES, bytes: MAX_BYTES } = DEFAULTS.steps

/** @returns how many signals the journal has then; undefined: it would outgrow a bound, and nothing was added */
export function addEntries(statements: Statements, job: number, given: readonly NewEntry[]): number | undefined {
  const counts = statements.get('journal/counts', { job })
  const has = (name: string): boolean =>
    counts !== undefined && statements.get('journal/known', { job, name }) !== undefined
  const added = new Map<string, NewEntry>()
  for (const entry of given) if (!added.has(entry.name) && !has(entry.name)) added.set(entry.name, entry)
  const { entries = 0, bytes = 0, signals = 0, last = 0 } = counts ?? {}
  if (added.size === 0) return integer(signals)
  const grow = { job, entries: added.size, bytes: 0, signals: 0, last: integer(last) }
  for (const entry of added.values()) {
    grow.bytes += entryBytes(entry)
    if (isSignal(entry.name)) grow.signals++
  }
  if (integer(entries) + grow.entries > MAX_ENTRIES || integer(bytes) + grow.bytes > MAX_BYTES) return undefined
  for (const entry of added.values()) {
    const { name, meta, body } = entry
    const own = { job, n: ++grow.last, name, meta, bytes: entryBytes(entry) }
    statements.run('journal/add', { ...own, encoding: body?.encoding ?? null, body: body?.body ?? null })
  }
  if (counts === undefined) statements.run('journal/mark', { job })
  statements.run('journal/grow', grow)
  return integer(signals) + grow.signals
}

/** Takes away what the worker added from a number on. */
export function forget(statements: Statements, id: string, from: number): void {
  const job = integer(statements.get('journal/place', { id })?.job)
  if (statements.run('journal/forget', { job, from }) > 0) statements.run('journal/recount', { job })
}

/** The fields of a record. */
export function stepsFrom(row: Row): Pick<JobRecord, 'journal' | 'parked'> {
  const journal = integerOrNull(row.entries)
  const parked = textOrNull(row.parked)
  return { ...(journal !== null && { journal }), ...(parked !== null && { parked }) }
}
