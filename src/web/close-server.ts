/**
 * Closes a server of node:http and cuts no request.
 *
 * 1. The server stops listening. Connections stay: a client may be about to use one.
 * 2. Every further answer says `Connection: close`, so that clients leave by themselves.
 * 3. Idle connections are closed after a pause without any finished answer.
 * 4. Connections that are left after the time limit are cut.
 *
 * `server.close()` alone closes idle connections at once, though a request may be on its way there. Then it waits for as long as clients
 * send requests through the others.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import { checkOptions, isDuration, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'

export interface CloseServerOptions {
  /** How long requests under way may take; 0 to 24 days, 20 s unless set. Then their connections are cut. */
  timeout?: Duration | undefined
}

/** The part of a server of node:http or node:https that `closeServer` uses. Express, Fastify and Hono build on these. */
export interface ClosableServer {
  readonly listening: boolean
  close(closed: () => void): unknown
  prependListener(name: 'request', listener: (incoming: IncomingMessage, outgoing: ServerResponse) => void): unknown
  off(name: 'request', listener: (incoming: IncomingMessage, outgoing: ServerResponse) => void): unknown
  closeIdleConnections?(): void
  closeAllConnections?(): void
}

const RULES: Rules<CloseServerOptions> = { timeout: isDuration(0) }
/** Milliseconds; longer than a request travels. A request that was sent before the client could know still gets its answer. */
const IDLE_CHECK_INTERVAL = 500

/** Closes the server and cuts no request. Resolves when no connection is left, or `timeout` is over. @throws InvalidOption */
export async function closeServer(server: ClosableServer, options?: CloseServerOptions): Promise<void> {
  const timeout = milliseconds(checkOptions(options, RULES, 'closeServer').timeout ?? '20s', 'timeout')
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

/**
 * Node's diagnostics channel for sent answers. Other runtimes do not publish on it; a connection may then be closed
 * soon after an answer.
 */
const RESPONSE_FINISHED = 'http.server.response.finish'

function stopListening(server: ClosableServer, closed: () => void): void {
  if (!(server instanceof NetServer)) {
    server.close(closed)
    return
  }
  NetServer.prototype.close.call(server, () => {
    // All connections are closed; this stops the timer that looks for slow requests.
    server.close(() => {})
    closed()
  })
}
