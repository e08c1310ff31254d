/**
 * Statements as scripts: several in one message and one transaction. Only the simple protocol takes several, and it takes no parameters, so
 * values are put into the text.
 */

/** A call inside a transaction that has begun. @param deadline ms after which the server gives it up */
export function scriptInside(statement: string, values: readonly unknown[], deadline: number): string {
  return `set local statement_timeout = ${deadline}; ${inlined(statement, values)}`
}

/** A call as a transaction of its own. */
export function scriptOf(statement: string, values: readonly unknown[], deadline: number): string {
  const script = scriptInside(statement, values, deadline)
  return `set transaction isolation level read committed, read write; ${script}`
}

/** The same for all calls of a connection. */
export function sessionSettings(deadline: number): string {
  return `set session characteristics as transaction isolation level read committed, read write; set statement_timeout = ${deadline}`
}

const QUOTE = '$mp$'
/** A value that ends with it would end its own quote too early. */
const QUOTE_BEGINS = '$mp'

/** @param text the store's own: with a `$` before nothing but a value's number */
export function inlined(text: string, values: readonly unknown[]): string {
  return text.replaceAll(/\$(\d+)/g, (_, number: string) => literal(values[Number(number) - 1]))
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? `(${value})` : String(value)
  if (typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') throw new TypeError(`millpond: a parameter is ${typeof value}`)
  // Both mean the same whatever standard_conforming_strings is set to.
  if (!value.includes(QUOTE_BEGINS)) return QUOTE + value + QUOTE
  return `E'${value.replaceAll(/['\\]/g, '$&$&')}'`
}
