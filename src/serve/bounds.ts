/** Bounds of the service, for requests and for connections. docs/serve.md gives the reason of each. */

/** For requests, on any server. */
export const LIMITS = {
  /** Bytes of a request's body. */
  maxBody: 2 * 1024 * 1024,
  /** Milliseconds that a body may take to come. */
  bodyTimeout: 30_000,
  /** Bytes of an encoded payload, result or progress report. */
  maxPayload: 1024 * 1024,
  /** Milliseconds of a long poll or a claim that waits. */
  longPoll: 60_000,
  /** Most requests of each kind (pushes, polls and streams, claims) that wait at once; further ones are answered at once. */
  maxWaiting: 1000,
  /** Most of them for one client, by the address of its connection. */
  maxWaitingPerClient: 500,
  /** With so many queues, clients cannot make another one. */
  maxQueues: 10_000,
  /** Queues that have metrics of their own. */
  metricsQueues: 100,
  /** Connections that the server in front takes at once. */
  maxConnections: 1024,
  /** Milliseconds, for `Retry-After` of a 503. */
  retryAfter: 2000,
}
export type Limits = typeof LIMITS

/** For connections, on the server of `millpond serve`; most are named as Node's. Times are in milliseconds. */
export const CONNECTION_LIMITS = {
  /** Connections at once; more are refused. */
  maxConnections: LIMITS.maxConnections,
  /** Requests after which a connection is closed, so that none is held for ever. */
  maxRequests: 1000,
  /** Bytes of all headers of a request together, and how many there may be. */
  maxHeaderSize: 16 * 1024,
  maxHeadersCount: 100,
  /** For the headers, for a whole request, and between two requests of a connection. */
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 10_000,
  /** How often the first two are checked. */
  connectionsCheckingInterval: 2000,
  /** For a client to read 64 KiB of an answer. */
  stall: 30_000,
  /** For a refused client to read the answer and close. */
  linger: 2000,
}
export type ConnectionLimits = typeof CONNECTION_LIMITS
