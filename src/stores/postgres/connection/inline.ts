/** Puts values into a statement's text, for the simple protocol. */

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
