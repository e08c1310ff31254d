/** The guards of `accept` and `follow`: who may do what. */

/** true: yes. A Response: no, and this is the answer. Anything else: no. */
export type GuardAnswer = boolean | Response

/** Not `instanceof` alone: servers replace the global class, and a Response of `fetch` is not of theirs. */
export function isResponse(value: unknown): value is Response {
  return value instanceof Response || Object.prototype.toString.call(value) === '[object Response]'
}
