/**
 * Closes a server of node:http and cuts no request.
 *
 * 1. It stops to listen. Connections stay: a client may be about to use one.
 * 2. Every further answer says `Connection: close`, so that clients askToLeave by themselves.
 * 3. Connections on which nothing happens are closed after a while in which no answer ended.
 * 4. What is left after the time limit is cut.
 *
 * `server.close()` alone does otherwise: it closes idle connections at once, though a request may be on its way there, and then waits for as
 * long as clients go on asking through the others.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { Duration } from '../values/duration.ts'
import { checkOptions, type Rules } from '../values/options.ts'
import { isDuration, millisecondsOr } from './settings.ts'

export interface CloseServerOptions {
  /** How long requests under way may take; 20 s unless given. */
  timeout?: Duration
}

/** What is used of a server of node:http or node:https, which Express, Fastify and Hono build upon. */
export interface ClosableServer {
  readonly listening: boolean
  close(closed: () => void): unknown
  prependListener(name: 'request', listener: (incoming: IncomingMessage, outgoing: ServerResponse) => void): unknown
  off(name: 'request', listener: (incoming: IncomingMessage, outgoing: ServerResponse) => void): unknown
  closeIdleConnections?(): void
  closeAllConnections?(): void
}

const RULES: Rules<CloseServerOptions> = { timeout: isDuration('timeout', 0) }
/** Milliseconds, more than a request takes on its way: one that was sent before the client could know still gets its answer. */
const IDLE_CHECK_INTERVAL = 500

/** Resolves when no connection is left, or the time is over. @throws InvalidOption */
export async function closeServer(server: ClosableServer, options?: CloseServerOptions): Promise<void> {
  const timeout = millisecondsOr(checkOptions(options, RULES, 'closeServer').timeout, '20s')
  if (!server.listening) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const askToLeave = (_: IncomingMessage, outgoing: ServerResponse) => outgoing.setHeader('connection', 'close')
  server.prependListener('request', askToLeave)
  const idle = setInterval(() => server.closeIdleConnections?.(), IDLE_CHECK_INTERVAL)
  const late = setTimeout(() => {
    server.closeAllConnections?.()
    resolve()
  }, timeout)
  const answered = (message: unknown) => {
    if (typeof message === 'object' && message !== null && 'server' in message && message.server === server) {
      idle.refresh()
    }
  }
  subscribe(RESPONSE_FINISHED, answered)
  stopListening(server, resolve)
  try {
    await promise
  } finally {
    clearTimeout(late)
    clearInterval(idle)
    unsubscribe(RESPONSE_FINISHED, answered)
    server.off('request', askToLeave)
  }
}

/** Node's own news of answers that are sent. Elsewhere it is silent, and then a connection may be closed soon after an answer. */
const RESPONSE_FINISHED = 'http.server.response.finish'

function stopListening(server: ClosableServer, closed: () => void): void {
  if (!(server instanceof NetServer)) {
    server.close(closed)
    return
  }
  NetServer.prototype.close.call(server, () => {
    // All is over; this stops the timer that looks for requests which take too long.
    server.close(() => {})
    closed()
  })
}
