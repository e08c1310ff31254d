/** The guards of `accept` and `follow`: who may do what. */

/** What a guard says. true: yes; a Response: no, and this is the answer. Anything else is a no, too. */
export type Verdict = boolean | Response

/** Not `instanceof` alone: servers replace the global class, and a Response of `fetch` is not of theirs. */
export function isResponse(value: unknown): value is Response {
  return value instanceof Response || Object.prototype.toString.call(value) === '[object Response]'
}
