/** Names of steps and of the entries of journals: contract/steps.md. */

import { MillpondError } from '../errors/errors.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { shown } from '../time/duration.ts'
import type { NewEntry } from './records.ts'

const { key: MAX_NAME } = DEFAULTS.steps

/** @throws InvalidOption */
export function checkStepName(name: unknown): string {
  const isName = typeof name === 'string' && name.length > 0 && name.length <= MAX_NAME
  if (isName && !/\p{Cc}/u.test(name) && !/#\d+$/.test(name) && name.isWellFormed()) return name
  const rule = `1 to ${MAX_NAME} characters without control characters, and must not end with # and digits`
  throw new MillpondError('InvalidOption', `the name of a step or a signal must have ${rule}; got ${shown(name)}`)
}

/** The name of the entry of a signal. */
export const signalEntry = (signal: string, id: string): string => `!${signal}/${id}`
export const isSignal = (name: string): boolean => name.startsWith('!')
/** The signal of an entry; undefined: it is of none. */
export const signalName = (name: string): string | undefined =>
  isSignal(name) ? name.slice(1, name.lastIndexOf('/')) : undefined
/** The key of the step that an entry of the worker is of. */
export const stepKey = (name: string): string => name.slice(1).split('\n')[0] ?? ''

/** What the bounds of a journal count of an entry. */
export const entryBytes = ({ name, meta, body }: NewEntry): number =>
  Buffer.byteLength(name) + Buffer.byteLength(meta) + (body === null ? 0 : Buffer.byteLength(body.body))
