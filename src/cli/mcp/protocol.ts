/**
 * A server of the Model Context Protocol over lines of JSON (https://modelcontextprotocol.io/specification, "stdio"): tools alone.
 * Requests run at once, and each is answered when it is done. The official SDK would bring an HTTP server and sixteen other packages.
 */
import { safeText } from '../../values/errors/safe-error.ts'

/** Newest first. */
const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
/** https://www.jsonrpc.org/specification, "Error object" */
const CODES = { parse: -32700, invalid: -32600, method: -32601, params: -32602, internal: -32603 } as const

export interface Tool {
  name: string
  title: string
  description: string
  inputSchema: object
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean }
}

export interface ToolAnswer {
  text: string
  isError: boolean
}

export interface McpServer {
  version: string
  instructions: string
  tools: readonly Tool[]
  /** @throws ToolUnknown */
  call(name: string, given: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolAnswer>
}

export class ToolUnknown extends Error {}

type Id = string | number
type Members = Readonly<Record<string, unknown>>
const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isId = (value: unknown): value is Id => typeof value === 'string' || typeof value === 'number'

export class Connection {
  readonly #server: McpServer
  readonly #send: (line: string) => void
  readonly #running = new Map<Id, AbortController>()
  readonly #underWay = new Set<Promise<void>>()

  /** @param send takes a line, without its end */
  constructor(server: McpServer, send: (line: string) => void) {
    this.#server = server
    this.#send = send
  }

  /** A line that came in. */
  heard(line: string): void {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      this.#fail(null, CODES.parse, 'the line is not JSON')
      return
    }
    // Clients of 2025-03-26 may send several in a list.
    for (const one of Array.isArray(message) ? message : [message]) this.#take(one)
  }

  /** Settles when all that was asked is answered. @param stop ends what runs */
  async idle(stop: boolean): Promise<void> {
    if (stop) for (const running of this.#running.values()) running.abort()
    await Promise.allSettled([...this.#underWay])
  }

  #take(message: unknown): void {
    if (!isMembers(message) || message.jsonrpc !== '2.0') {
      this.#fail(null, CODES.invalid, 'this is no message of JSON-RPC 2.0')
      return
    }
    // This server asks nothing, so it has no use for answers.
    if ('result' in message || 'error' in message) return
    const { id, method } = message
    const params = isMembers(message.params) ? message.params : {}
    if (typeof method !== 'string') this.#fail(isId(id) ? id : null, CODES.invalid, 'method is missing')
    else if (id === undefined) this.#noted(method, params)
    else if (isId(id)) this.#begin(id, method, params)
    else this.#fail(null, CODES.invalid, 'id is a string or a number')
  }

  #begin(id: Id, method: string, params: Members): void {
    const running = new AbortController()
    this.#running.set(id, running)
    const answered = this.#answer(id, method, params, running.signal).finally(() => {
      this.#running.delete(id)
      this.#underWay.delete(answered)
    })
    this.#underWay.add(answered)
  }

  #noted(method: string, { requestId }: Members): void {
    if (method === 'notifications/cancelled' && isId(requestId)) this.#running.get(requestId)?.abort()
  }

  async #answer(id: Id, method: string, params: Members, signal: AbortSignal): Promise<void> {
    try {
      const result = await this.#result(method, params, signal)
      // Nobody waits for the answer to what was cancelled.
      if (signal.aborted) return
      if (result === undefined) this.#fail(id, CODES.method, `there is no method ${method.slice(0, 60)}`)
      else this.#send(JSON.stringify({ jsonrpc: '2.0', id, result }))
    } catch (error) {
      if (signal.aborted) return
      this.#fail(id, error instanceof ToolUnknown ? CODES.params : CODES.internal, safeText(error))
    }
  }

  async #result(method: string, params: Members, signal: AbortSignal): Promise<object | undefined> {
    const { version, instructions, tools } = this.#server
    switch (method) {
      case 'initialize': {
        const asked = VERSIONS.find((one) => one === params.protocolVersion)
        return {
          protocolVersion: asked ?? VERSIONS[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'millpond', title: 'Millpond', version },
          instructions,
        }
      }
      case 'ping':
        return {}
      case 'tools/list':
        return { tools }
      case 'tools/call': {
        const { name } = params
        const given = params.arguments ?? {}
        if (typeof name !== 'string' || !isMembers(given))
          throw new ToolUnknown('tools/call takes a name and arguments')
        const { text, isError } = await this.#server.call(name, given, signal)
        return { content: [{ type: 'text', text }], isError }
      }
      default:
        return undefined
    }
  }

  #fail(id: Id | null, code: number, message: string): void {
    this.#send(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
  }
}
