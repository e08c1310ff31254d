/** A statement as a handler gives it to `ctx.tx` or `ctx.replica`. */

import { MillpondError } from '../values/errors/errors.ts'
import { kindOf } from '../values/time/duration.ts'

/** Begin, commit and rollback are ours; savepoints, and rolling back to them, are the handler's. */
const CONTROL = new RegExp(
  /^(?:\s|;|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*/.source +
    `(?:${/(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction)\b/.source}|` +
    `${/rollback\b(?!\s+(?:work\s+|transaction\s+)?to\b)/.source})`,
  'i',
)

/** @param where what was called @throws InvalidOption */
export function checkStatement(where: 'ctx.tx' | 'ctx.replica', text: unknown, params: unknown): void {
  if (typeof text !== 'string' || !Array.isArray(params)) {
    const message = `${where} takes a statement as text and an array of parameters; got ${kindOf(text)} and ${kindOf(params)}`
    throw new MillpondError('InvalidOption', message)
  }
  if (where === 'ctx.replica' || !CONTROL.test(text)) return
  const message = 'a handler does not begin or end its transaction itself: return to commit it, throw to roll it back'
  throw new MillpondError('InvalidOption', message)
}
