/** A statement as a handler gives it to `ctx.tx` or `ctx.replica`. */
import { kindOf } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'

/** @param where what was called @throws InvalidOption */
export function checkStatement(where: 'ctx.tx' | 'ctx.replica', text: unknown, params: unknown): void {
  if (typeof text === 'string' && Array.isArray(params)) return
  const message = `${where} takes a statement as text and an array of parameters; got ${kindOf(text)} and ${kindOf(params)}`
  throw new MillpondError('InvalidOption', message)
}
