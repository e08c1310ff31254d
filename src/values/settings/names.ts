/** The rules of names; `contract/operations.md` states them, `contract/vectors/keys.json` pins them. */

import { MillpondError } from '../errors/errors.ts'
import { shown } from '../time/duration.ts'

const QUEUE_NAME = /^[A-Za-z0-9][A-Za-z0-9_\-.:/]{0,127}$/

export const isQueueName = (name: unknown): name is string => typeof name === 'string' && QUEUE_NAME.test(name)

/** @throws InvalidName */
export function checkQueueName(name: unknown): string {
  if (isQueueName(name)) return name
  throw new MillpondError(
    'InvalidName',
    `a queue name is 1 to 128 of the characters A–Z a–z 0–9 _ - . : / and begins with a letter or digit; got ${shown(name)}`,
  )
}

/** @throws InvalidName */
export function checkScheduleName(name: unknown): string {
  if (isQueueName(name)) return name
  throw new MillpondError(
    'InvalidName',
    `the name of a schedule follows the rule of queue names: 1 to 128 of A–Z a–z 0–9 _ - . : /; got ${shown(name)}`,
  )
}

/**
 * A `key` or `group`: any text of 1 to 255 bytes in UTF-8 without NUL.
 * @throws InvalidName
 */
export function checkKey(value: unknown, what: 'key' | 'group'): string {
  if (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= 255 &&
    !value.includes('\0') &&
    value.isWellFormed() &&
    (value.length <= 85 || Buffer.byteLength(value) <= 255)
  ) {
    return value
  }
  throw new MillpondError(
    'InvalidName',
    `${what} must be a string of 1 to 255 bytes in UTF-8, without NUL or lone surrogates; got ${shown(value)}`,
  )
}
