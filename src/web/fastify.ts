/** `millpond/web/fastify`: a handler from Request to Response as a Fastify plugin. */
import '../values/runtime/runtime.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { requestOf } from './node-request.ts'
import { inTurn } from './pipelining.ts'
import { problem, Refusal } from './problem.ts'

/** The part of a Fastify instance that `toFastify` uses, so that neither Fastify nor its types have to be installed. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: '*',
    parse: (request: unknown, body: unknown, done: (error: null) => void) => void,
  ): unknown
  all(path: string, handle: (request: FastifyIncoming, reply: FastifyOutgoing) => unknown): unknown
}
/** The part of a Fastify request that is used. */
export interface FastifyIncoming {
  raw: IncomingMessage
}
/** The part of a Fastify reply that is used. */
export interface FastifyOutgoing {
  raw: ServerResponse
  send(response: Response): unknown
}

/**
 * For `app.register(toFastify(handler), { prefix: '/emails' })`: the handler gets every request below the prefix. It is
 * a plugin, not a route, because the handler reads the body itself: inside the plugin Fastify's parsers are off.
 * Fastify's hooks and its error handler apply.
 *
 * Requests of one connection are handled one after the other; a connection with more than 16 unanswered requests is cut.
 */
export function toFastify(
  handler: (request: Request) => Response | Promise<Response>,
): (scope: FastifyScope) => Promise<void> {
  const handle = async ({ raw: incoming }: FastifyIncoming, reply: FastifyOutgoing) => {
    const { raw: outgoing } = reply
    await new Promise<void>((resolve) => inTurn(incoming, outgoing, resolve))
    let request: Request
    try {
      request = requestOf(incoming, outgoing)
    } catch (error) {
      if (error instanceof Refusal) return reply.send(problem(error.problem))
      throw error
    }
    return reply.send(await handler(request))
  }
  return async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    scope.all('/', handle)
    scope.all('/*', handle)
  }
}
