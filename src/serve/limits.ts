/** What the service takes at the most. */
export interface Limits {
  /** Bytes of a request's body. */
  maxBody: number
  /** Milliseconds that a body may take to come. */
  bodyTimeout: number
  /** Bytes of an encoded payload, result or progress report. */
  maxPayload: number
  /** Milliseconds of a long poll or a claim that waits. */
  maxWait: number
  /** How many requests of each kind (pushes, polls and streams, claims) wait at once; those beyond are answered at once. */
  maxWaiting: number
  /** How many queues there may be for a client to make another one. */
  maxQueues: number
  /** Milliseconds, for `Retry-After` of a 503. */
  retryAfter: number
}

export const LIMITS: Limits = {
  maxBody: 2 * 1024 * 1024,
  bodyTimeout: 30_000,
  maxPayload: 1024 * 1024,
  maxWait: 60_000,
  maxWaiting: 1000,
  maxQueues: 10_000,
  retryAfter: 2000,
}
