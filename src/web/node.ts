/**
 * `millpond/web/node`: a handler from Request to Response as a listener of node:http, which Express takes as it is.
 * Our own rather than a package: it is small, and the library stays without a dependency that only some need.
 */
import '../values/runtime.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duration } from '../values/duration.ts'
import { checkOptions, type Rules } from '../values/options.ts'
import { requestOf } from './incoming.ts'
import { send } from './outgoing.ts'
import { problem, troubleOf } from './problem.ts'
import { reporter } from './report.ts'
import { isDuration, millisecondsOr } from './settings.ts'
import { inTurn } from './turns.ts'

export { type ClosableServer, type CloseServerOptions, closeServer } from './close-server.ts'

export interface NodeOptions {
  /** How long a client may take to read 64 KiB of its answer, or what is left of it, before it is cut off; 60 s unless given. */
  stall?: Duration
}

const RULES: Rules<NodeOptions> = { stall: isDuration('stall') }

export type NodeListener = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  next?: (error?: unknown) => void,
) => void

/**
 * For `createServer(toNode(handler))` and `app.post('/emails', toNode(handler))`. The request's signal is aborted when the client hangs up.
 * Requests of one connection are handled one after the other; with more than 16 unanswered ones it is cut. If a body parser ran before, what it made is taken. Should the handler reject, Express is told, or else the answer is a bare 500.
 * @throws InvalidOption
 */
export function toNode(
  handler: (request: Request) => Response | Promise<Response>,
  options?: NodeOptions,
): NodeListener {
  const stall = millisecondsOr(checkOptions(options, RULES, 'toNode').stall, '60s')
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
      if (outgoing.headersSent || outgoing.destroyed) {
        outgoing.destroy()
        return
      }
      const trouble = troubleOf(error, 1)
      if (trouble.ours && next !== undefined) {
        next(error)
        return
      }
      if (trouble.ours) report(error, request)
      await send(problem(trouble.problem), outgoing, stall).catch(() => outgoing.destroy())
    }
  }
}
