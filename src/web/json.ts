/**
 * JSON in which every integer arrives as it was written. A JavaScript number holds integers up to 2^53 exactly;
 * `JSON.parse` changes many larger ones without a word: 9007199254740993 becomes 9007199254740992. Such a text is
 * refused.
 */

import { pathTo } from '../values/encoding/well-formed.ts'
import { MillpondError } from '../values/errors/errors.ts'

/** Digits of the shortest integer that may change. Few texts have so many in a row. */
const LONG_RUN = /\d{16}/
const LONG_NUMBER = /-?[\d.eE+-]{16,}/g
const INTEGER = /^-?\d+$/
/** Takes the integer's place to find its path. */
const MARK = '\0integer'

/** @throws SyntaxError, and PayloadNotEncodable with the path to an integer that would be changed */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!LONG_RUN.test(text)) return value
  const found = changedInteger(text)
  if (found === undefined) return value
  const marked = text.slice(0, found.from) + JSON.stringify(MARK) + text.slice(found.to)
  const path = pathTo(JSON.parse(marked), (part) => part === MARK) ?? ''
  const where = path === '' ? 'is' : `has at ${path}`
  const message = `an integer that a JSON number would change: send it as a string, or as MessagePack`
  throw new MillpondError('PayloadNotEncodable', `the JSON ${where} ${message}`, {
    issues: [{ message: `is ${message}`, path }],
  })
}

/** Where the first integer stands that would not come out as it went in. @param text valid JSON */
function changedInteger(text: string): { from: number; to: number } | undefined {
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from)
    const to = quote < 0 ? text.length : quote
    for (const { 0: token, index } of text.slice(from, to).matchAll(LONG_NUMBER)) {
      if (INTEGER.test(token) && isChanged(token)) return { from: from + index, to: from + index + token.length }
    }
    from = quote < 0 ? to : endOfText(text, quote)
  }
  return undefined
}

/** Whether a double holds another value. An integer beyond all doubles becomes Infinity, which the encoding refuses later. */
function isChanged(integer: string): boolean {
  const number = Number(integer)
  return Number.isFinite(number) && String(number) !== integer
}

/** Behind the closing quote. */
function endOfText(text: string, quote: number): number {
  for (let end = text.indexOf('"', quote + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end + 1
  }
}
