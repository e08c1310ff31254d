/** Checks what callers pass: unknown names are refused, since a misspelt option that is silently ignored loses jobs later. */

import { MillpondError } from '../errors/errors.ts'
import { hasTag } from '../runtime/realms.ts'
import { kindOf, LONGEST_TIMER, milliseconds, shown } from '../time/duration.ts'
import { didYouMean } from './did-you-mean.ts'

/** Per option: true if the value is fine, else what it should have been. May throw an InvalidOption of its own. */
export type Rules<T> = { [K in keyof Required<T>]: (value: unknown, name: string) => boolean | string }

/** @throws InvalidOption */
export function checkOptions<T extends object>(
  options: T | undefined,
  rules: Rules<T>,
  where: string,
  required: readonly (keyof T & string)[] = [],
): T {
  const given = options ?? {}
  checkObject(given, where)
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(rules, name)) {
      const known = Object.keys(rules)
      throw invalid(where, `unknown option ${shownName(name)}; known are ${known.join(', ')}${didYouMean(name, known)}`)
    }
    const verdict = value === undefined || rules[name as keyof T](value, name)
    if (verdict !== true)
      throw invalid(where, `${name} must be ${verdict === false ? 'otherwise' : verdict}; got ${shown(value)}`)
  }
  for (const name of required) if ((given as T)[name] === undefined) throw invalid(where, `${name} is missing`)
  return given as T
}

function invalid(where: string, reason: string): MillpondError {
  return new MillpondError('InvalidOption', `${where}: ${reason}`)
}

/** Not a promise, a Map or a Date either: whatever they hold, it would be ignored. @throws InvalidOption */
export function checkObject(given: unknown, where: string): void {
  if (Object.prototype.toString.call(given) === '[object Object]') return
  throw new MillpondError('InvalidOption', `${where} takes an object of options; got ${kindOf(given)}`)
}

/** @param what takes it, as in `work takes a function as handler` @throws InvalidOption */
export function checkFunction(given: unknown, what: string): void {
  if (typeof given !== 'function') throw new MillpondError('InvalidOption', `${what}; got ${kindOf(given)}`)
}

/** The members that are not undefined. */
export function defined<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}

/** An unknown option is shown only if it looks like a name: data may have been passed by mistake, or a part of a URL. */
export function shownName(name: string): string {
  return /^[A-Za-z_$][\w$-]{0,40}$/.test(name) ? JSON.stringify(name) : '"…"'
}

export const isBoolean = (value: unknown) => typeof value === 'boolean' || 'true or false'
export const isFunction = (value: unknown) => typeof value === 'function' || 'a function'
export const isSignal = (value: unknown) => hasTag(value, 'AbortSignal') || 'an AbortSignal'

/** The signal of a call's options, where it is the only option. @throws InvalidOption, and the reason of a signal that is aborted */
export function signalOf(
  options: { signal?: AbortSignal | undefined } | undefined,
  where: string,
): AbortSignal | undefined {
  if (options === undefined) return undefined
  const { signal } = checkOptions(options, { signal: isSignal }, where)
  signal?.throwIfAborted()
  return signal
}

/** A duration from `least` to `most` milliseconds; unless given, those of a timer. */
export const isDuration =
  (least = 1, most = LONGEST_TIMER) =>
  (value: unknown, name: string) =>
    milliseconds(value, name, least, most) >= least
export const isInteger = (least: number, most: number) => (value: unknown) =>
  (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) ||
  `a whole number from ${least} to ${most}`
