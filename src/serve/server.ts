/**
 * The service behind node:http: bounds on everything that comes, and a stop that loses nothing.
 *
 * Stopping: no new connections; requests that wait are answered with what is known; requests under way may finish; then
 * connections are cut.
 */
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { closeServer, toNode } from '../web/node.ts'
import { inTurn, isFull } from '../web/pipelining.ts'
import { problem } from '../web/problem.ts'
import { CONNECTION_LIMITS, type ConnectionLimits } from './bounds.ts'

export interface ServerOptions {
  handle: (request: Request) => Promise<Response>
  /** Called once, when the stop begins. */
  stopping: () => void
  limits?: Partial<ConnectionLimits>
  /** Called after every answer. */
  onAnswer?: (method: string, path: string, status: number, ms: number) => void
}

const BROKEN: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/**
 * Stops the reading of a connection at its first request too many, for the option `IncomingMessage` of `createServer`.
 *
 * Node parses all requests in the 64 KiB that it has read, even if the connection is cut at the 17th of 1,700: 1,000 such connections took
 * gigabytes. Node's parser stops only for a change of protocol; without a listener for `upgrade`, Node then destroys the connection. In
 * runtimes without this option, `inTurn` cuts the connection.
 */
class PipelinedMessage extends IncomingMessage {
  declare private isUpgrade: boolean | null

  get upgrade(): boolean | null {
    return this.isUpgrade
  }

  /** Set by Node, from the headers. */
  set upgrade(asked: boolean | null) {
    this.isUpgrade = asked || isFull(this.socket)
  }
}

export class HttpServer {
  readonly #server: Server
  readonly #options: ServerOptions
  readonly #limits: ConnectionLimits
  /** How many requests each connection has had. */
  readonly #requests = new WeakMap<Socket, number>()
  readonly #underWay = new Set<ServerResponse>()
  #stopped: Promise<void> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.#limits = { ...CONNECTION_LIMITS, ...options.limits }
    const { maxConnections, maxHeadersCount } = this.#limits
    const listener = toNode(options.handle, { stall: this.#limits.stall })
    const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
      inTurn(incoming, outgoing, () => {
        this.#note(incoming, outgoing)
        listener(incoming, outgoing)
      })
    }
    this.#server = createServer(
      {
        ...this.#limits,
        // Answers that Node itself sends are out of turn and unbounded. So the listener answers these requests, too.
        requireHostHeader: false,
        IncomingMessage: PipelinedMessage,
      },
      onRequest,
    )
    this.#server.on('checkExpectation', onRequest)
    Object.assign(this.#server, { maxConnections, maxHeadersCount })
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      // A refusal must not go into the middle of another answer.
      if ([...this.#underWay].some((outgoing) => outgoing.socket === socket)) socket.destroy()
      else refuse(error, socket, this.#limits.linger)
    })
  }

  /** @param address an IP address @returns the origin, with the port that it got */
  async listen(address: string, port: number): Promise<string> {
    await once(this.#server.listen({ host: address, port }), 'listening')
    const bound = this.#server.address()
    const actual = typeof bound === 'object' && bound !== null ? bound.port : port
    return `http://${isIPv6(address) ? `[${address}]` : address}:${actual}`
  }

  /** Resolves when no connection is left. @param timeout milliseconds that requests under way may take */
  stop(timeout: number): Promise<void> {
    this.#stopped ??= this.#stop(timeout)
    return this.#stopped
  }

  async #stop(timeout: number): Promise<void> {
    const closed = closeServer(this.#server, { timeout })
    // Otherwise clients could go on sending requests through open connections.
    for (const outgoing of this.#underWay) outgoing.shouldKeepAlive = false
    this.#options.stopping()
    await closed
    // Node reports the server's end before the `close` of cut answers, at which claims are given back.
    await Promise.all([...this.#underWay].map((outgoing) => new Promise((over) => outgoing.once('close', over))))
  }

  #note(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const began = performance.now()
    this.#underWay.add(outgoing)
    const requests = (this.#requests.get(incoming.socket) ?? 0) + 1
    this.#requests.set(incoming.socket, requests)
    if (requests >= this.#limits.maxRequests) outgoing.shouldKeepAlive = false
    outgoing.once('close', () => {
      this.#underWay.delete(outgoing)
      const { onAnswer } = this.#options
      if (onAnswer === undefined) return
      const path = (incoming.url ?? '').split('?', 1)[0] ?? ''
      onAnswer(incoming.method ?? '', path, outgoing.statusCode, performance.now() - began)
    })
  }
}

/** Answers what is not HTTP, or too much of it, and so becomes no request. @param linger milliseconds */
function refuse(error: NodeJS.ErrnoException, socket: Socket, linger: number): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = BROKEN[error.code ?? ''] ?? 400
  const detail = 'The request was not understood, was too long, or did not come in time.'
  void problem({ status, detail })
    .text()
    .then((body) => {
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/problem+json\r\nconnection: close\r\n`
      socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    })
  // A client that keeps its side open would go on counting as a connection. If it were cut at once, it might miss the answer.
  const timer = setTimeout(() => socket.destroy(), linger)
  socket.once('close', () => clearTimeout(timer))
}
