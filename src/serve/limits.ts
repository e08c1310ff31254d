/** What the service takes at the most, of requests and of connections. docs/serve.md tells each with its reason. */

/** Of requests, whatever server is in front. */
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
  /** How many of those one client has, by the address of its connection. */
  maxWaitingPerClient: number
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
  maxWaitingPerClient: 500,
  maxQueues: 10_000,
  retryAfter: 2000,
}

/** Of connections, where the server is ours. Times are in milliseconds. */
export interface ConnectionLimits {
  /** Connections at once; more are refused. */
  maxConnections: number
  /** Requests of a connection, after which it is closed, so that none is held for good. */
  maxRequests: number
  /** Bytes of all headers of a request together, and how many there may be. */
  headerBytes: number
  headers: number
  /** For the headers, for a whole request, and between two requests of a connection. */
  headersTimeout: number
  requestTimeout: number
  keepAlive: number
  /** How often the first two are looked after. */
  checkEvery: number
  /** For 64 KiB of an answer to be read by its client. */
  stall: number
  /** For a client that was refused to read why, and close. */
  linger: number
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  maxConnections: 1024,
  maxRequests: 1000,
  headerBytes: 16 * 1024,
  headers: 100,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAlive: 10_000,
  checkEvery: 2000,
  stall: 30_000,
  linger: 2000,
}
