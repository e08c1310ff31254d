/** `millpond/web/node`: a handler from Request to Response as a listener of node:http, also for Express. */
import '../values/runtime/runtime.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkOptions, isDuration, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { requestOf } from './node-request.ts'
import { isCut, send } from './node-response.ts'
import { inTurn } from './pipelining.ts'
import { problem, problemOf, reporter } from './problem.ts'

export { type ClosableServer, type CloseServerOptions, closeServer } from './close-server.ts'

export interface NodeOptions {
  /**
   * How long a client may take to read 64 KiB of its answer, or the rest of it; 1 ms to 24 days, 60 s unless set. Then
   * its connection is cut.
   */
  stall?: Duration | undefined
}

const RULES: Rules<NodeOptions> = { stall: isDuration() }

/** A listener of node:http. `next`: given by Express; called with errors of the handler. */
export type NodeListener = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  next?: (error?: unknown) => void,
) => void

/**
 * For `createServer(toNode(handler))` and `app.post('/emails', toNode(handler))`.
 *
 * The request's signal is aborted when the client disconnects. Requests of one connection are handled one after the
 * other; a connection with more than 16 unanswered requests is cut. If a body parser ran before, its result is used as
 * the body. If the handler rejects, Express gets the error by `next`; without Express the answer is a problem document:
 * 500, or 503 for errors that pass.
 * @throws InvalidOption
 */
export function toNode(
  handler: (request: Request) => Response | Promise<Response>,
  options?: NodeOptions,
): NodeListener {
  const stall = milliseconds(checkOptions(options, RULES, 'toNode').stall ?? '60s', 'stall')
  const report = reporter(undefined)

  return (incoming, outgoing, next) => {
    inTurn(incoming, outgoing, () => void handle(incoming, outgoing, next))
  }

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse, next?: (error?: unknown) => void) {
    let request: Request | undefined
    try {
      request = requestOf(incoming, outgoing)
      await send(await handler(request), outgoing, stall)
    } catch (error) {
      if (outgoing.headersSent || isCut(outgoing)) {
        outgoing.destroy()
        return
      }
      const { problem: document, isReported } = problemOf(error, 1)
      if (isReported && next !== undefined) {
        next(error)
        return
      }
      if (isReported) report(error, request)
      await send(problem(document), outgoing, stall).catch(() => outgoing.destroy())
    }
  }
}
