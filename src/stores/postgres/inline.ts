/**
 * Puts parameters into a statement's text, for the simple protocol. Behind a pooler the store's own statements go this way: one
 * message there, one back, and nothing that a later statement on another connection could miss. PgBouncer 1.18 was seen to leave
 * postgres.js waiting for ever when unnamed statements, which it describes before it runs them, follow each other closely.
 */

/** @param text the store's own: with a `$` before nothing but a parameter's number */
export function inlined(text: string, params: readonly unknown[]): string {
  return text.replaceAll(/\$(\d+)/g, (_, number: string) => literal(params[Number(number) - 1]))
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? `(${value})` : String(value)
  if (typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') throw new TypeError(`millpond: a parameter is ${typeof value}`)
  // Means the same whatever standard_conforming_strings is set to.
  return `E'${value.replaceAll(/['\\]/g, '$&$&')}'`
}
