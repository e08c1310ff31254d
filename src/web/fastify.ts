/** `millpond/web/fastify`: a handler from Request to Response as a Fastify plugin. */
import '../values/runtime.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { requestOf } from './incoming.ts'
import { problem, Refusal } from './problem.ts'
import { inTurn } from './turns.ts'

/** What is used of Fastify, so that neither it nor its types have to be installed. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: '*',
    parse: (request: unknown, body: unknown, done: (error: null) => void) => void,
  ): unknown
  all(path: string, handle: (request: FastifyIncoming, reply: FastifyOutgoing) => unknown): unknown
}
export interface FastifyIncoming {
  raw: IncomingMessage
}
export interface FastifyOutgoing {
  raw: ServerResponse
  send(response: Response): unknown
}

/**
 * For `app.register(toFastify(handler), { prefix: '/emails' })`: the handler gets whatever comes below the prefix. A plugin and no route, since it
 * must read the body itself: Fastify's parsers are off within it, and only there. Fastify's hooks and its error handler apply.
 */
export function toFastify(
  handler: (request: Request) => Response | Promise<Response>,
): (scope: FastifyScope) => Promise<void> {
  const handle = async ({ raw }: FastifyIncoming, reply: FastifyOutgoing) => {
    return reply.send(await respond(raw, reply.raw))
  }
  return async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    scope.all('/', handle)
    scope.all('/*', handle)
  }

  async function respond(incoming: IncomingMessage, outgoing: ServerResponse): Promise<Response> {
    await new Promise<void>((resolve) => inTurn(incoming, outgoing, resolve))
    let request: Request
    try {
      request = requestOf(incoming, outgoing)
    } catch (error) {
      if (error instanceof Refusal) return problem(error.problem)
      throw error
    }
    return handler(request)
  }
}
