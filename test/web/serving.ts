/** What the web tests share: ponds and servers that end with their test, and short ways to ask. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { Packr } from 'msgpackr'
import { Millpond, type Queue } from '../../src/index.ts'
import { toNode } from '../../src/web/node.ts'

export type WebHandler = (request: Request) => Response | Promise<Response>

export interface Bench {
  pond: Millpond
  /** The handler behind a real server on loopback. @returns its origin, without a slash at the end */
  serve(handler: WebHandler, listener?: Parameters<typeof createServer>[1]): Promise<string>
}

/** A test with a memory pond. */
export function webTest(title: string, check: (bench: Bench) => Promise<void>): void {
  test(title, { timeout: 30_000 }, async () => {
    const pond = await Millpond.open('memory:')
    const servers: Server[] = []
    const serve = async (handler: WebHandler, listener = toNode(handler)) => {
      const server = createServer(listener)
      servers.push(server)
      return listening(server)
    }
    try {
      await check({ pond, serve })
    } finally {
      await pond.close({ timeout: 100 })
      for (const server of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    }
  })
}

export async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The queue for `accept`, with a part of its pond replaced. */
export function lookedAt<Input>(queue: Queue<Input>, part: Partial<Queue['pond']>) {
  const { name, pond } = queue
  const push: Queue<Input>['push'] = (data, options) => queue.push(data, options)
  return { name, push, pond: { job: pond.job.bind(pond), result: pond.result.bind(pond), ...part } }
}

/** A POST of JSON. */
export function posted(data: unknown, headers: Record<string, string> = {}, url = 'http://localhost/emails'): Request {
  const body = JSON.stringify(data)
  return new Request(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
}

/** A POST of any body. */
export function raw(body: BodyInit | null, type?: string, headers: Record<string, string> = {}): Request {
  const all: Record<string, string> = { ...(type === undefined ? {} : { 'content-type': type }), ...headers }
  return new Request('http://localhost/emails', { method: 'POST', headers: all, body })
}
export type BodyInit = NonNullable<ConstructorParameters<typeof Response>[0]>

/** An object that JSON or MessagePack gave. */
export async function bodyOf(response: Response): Promise<Record<string, unknown>> {
  const isPacked = response.headers.get('content-type') === 'application/msgpack'
  const value: unknown = isPacked
    ? new Packr({ useRecords: false }).unpack(new Uint8Array(await response.arrayBuffer()))
    : await response.json()
  assert.ok(typeof value === 'object' && value !== null)
  return { ...value }
}

/** Asserts that the answer is a problem document with the status, and with the code where one is given. @returns the document */
export async function isProblem(response: Response, status: number, code?: string): Promise<Record<string, unknown>> {
  const text = await response.text()
  assert.equal(response.status, status, text)
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
  const document: Record<string, unknown> = JSON.parse(text)
  assert.equal(document.status, status)
  assert.equal(document.code, code)
  assert.equal(document.type, code === undefined ? 'about:blank' : `urn:millpond:error:${code}`)
  assert.ok(typeof document.title === 'string' && document.title !== '')
  assert.ok(typeof document.detail === 'string' && document.detail !== '')
  // Frames of a stack, and places in the file system, are nobody's business.
  assert.doesNotMatch(text, /\bat .+:\d+|\/src\/|node:internal/)
  return document
}

/** The id that a 202 gives. */
export async function acceptedId(response: Response): Promise<string> {
  const body = await bodyOf(response)
  assert.equal(response.status, 202, JSON.stringify(body))
  assert.ok(typeof body.id === 'string')
  return body.id
}

/** Sends bytes as they are and gives what comes back until the other side closes, or `until` is in it. */
export function exchange(origin: string, sent: string | Uint8Array, until?: string): Promise<string> {
  const { hostname, port } = new URL(origin)
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket = connect(Number(port), hostname, () => socket.write(sent))
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1')
      if (until !== undefined && heard.includes(until)) socket.destroy()
    })
    socket.on('error', (error) => (heard === '' ? reject(error) : resolve(heard)))
    socket.on('close', () => resolve(heard))
  })
}
