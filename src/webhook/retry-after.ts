/** `Retry-After` as RFC 9110 has it (10.2.3, 5.6.7): whole seconds, or a date in one of three forms. */

import { DEFAULTS } from '../values/settings/contract-defaults.ts'

const { minRetryAfter: SHORTEST, maxRetryAfter: LONGEST } = DEFAULTS.webhook

const TIME = '(?<time>(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d)'
const DATES: readonly RegExp[] = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^[A-Z][a-z]{2}, (?<day>\\d\\d) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${TIME} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^[A-Z][a-z]+day, (?<day>\\d\\d)-(?<month>[A-Z][a-z]{2})-(?<year>\\d\\d) ${TIME} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
]

/**
 * Milliseconds that it asks to wait, from a second to a day. Undefined if it names no time ahead: it is malformed, 0,
 * or a date that is past, perhaps because clocks differ. The caller's own backoff is better then.
 */
export function retryAfter(value: string, now: number): number | undefined {
  const text = value.trim()
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : (dateOf(text, now) ?? now) - now
  return ms > 0 ? Math.min(Math.max(ms, SHORTEST), LONGEST) : undefined
}

function dateOf(text: string, now: number): number | undefined {
  const parts = DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined)
  if (parts === undefined) return undefined
  const { day = '', month, year = '', time } = parts
  const ms = Date.parse(`${day.trim().padStart(2, '0')} ${month} ${fullYear(year, now)} ${time} GMT`)
  return Number.isNaN(ms) ? undefined : ms
}

/** A year of two digits belongs to this century, or to the last one if it would be more than 50 years ahead. */
function fullYear(year: string, now: number): string {
  if (year.length === 4) return year
  const current = new Date(now).getUTCFullYear()
  const full = current - (current % 100) + Number(year)
  return String(full > current + 50 ? full - 100 : full)
}
