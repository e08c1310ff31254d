/** Names of steps and of the entries of journals: contract/steps.md. */

import { MillpondError } from '../errors/errors.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { shown } from '../time/duration.ts'

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
/** The signal of an entry; undefined: it is of none. */
export const signalName = (name: string): string | undefined =>
  name.startsWith('!') ? name.slice(1, name.lastIndexOf('/')) : undefined
