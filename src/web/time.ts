/** Times as text: RFC 3339 in UTC. */

/** The last moment that has a text, whose years have four digits; in milliseconds since 1970. */
export const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** A later time is told as the last one: a Date goes on to `+275760-…`, which few clients can read. */
export function timeText(time: Date): string {
  return new Date(Math.min(time.getTime(), LAST_TIME)).toISOString()
}
