/** What the service takes at the most, of requests and of connections. docs/serve.md tells each with its reason. */

/** Of requests, whatever server is in front. */
export const LIMITS = {
  /** Bytes of a request's body. */
  maxBody: 2 * 1024 * 1024,
  /** Milliseconds that a body may take to come. */
  bodyTimeout: 30_000,
  /** Bytes of an encoded payload, result or progress report. */
  maxPayload: 1024 * 1024,
  /** Milliseconds of a long poll or a claim that waits. */
  maxWait: 60_000,
  /** How many requests of each kind (pushes, polls and streams, claims) wait at once; those beyond are answered at once. */
  maxWaiting: 1000,
  /** How many of those one client has, by the address of its connection. */
  maxWaitingPerClient: 500,
  /** How many queues there may be for a client to make another one. */
  maxQueues: 10_000,
  /** Milliseconds, for `Retry-After` of a 503. */
  retryAfter: 2000,
}
export type Limits = typeof LIMITS

/** Of connections, where the server is ours. Times are in milliseconds. */
export const CONNECTION_LIMITS = {
  /** Connections at once; more are refused. */
  maxConnections: 1024,
  /** Requests of a connection, after which it is closed, so that none is held for good. */
  maxRequests: 1000,
  /** Bytes of all headers of a request together, and how many there may be. */
  headerBytes: 16 * 1024,
  headers: 100,
  /** For the headers, for a whole request, and between two requests of a connection. */
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAlive: 10_000,
  /** How often the first two are looked after. */
  checkEvery: 2000,
  /** For 64 KiB of an answer to be read by its client. */
  stall: 30_000,
  /** For a client that was refused to read why, and close. */
  linger: 2000,
}
export type ConnectionLimits = typeof CONNECTION_LIMITS
