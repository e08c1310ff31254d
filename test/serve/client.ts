/** What the tests of the service share: services that end with their test, and short ways to ask. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import type { ConnectionLimits } from '../../src/serve/bounds.ts'
import { type Served, type ServeOptions, serve } from '../../src/serve/index.ts'
import { HttpServer } from '../../src/serve/server.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { removePrefix } from '../stores/redis-fixture.ts'

export interface Answered {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

/** A service, asked without a network. */
export class Client {
  readonly served: Served
  readonly #headers: Record<string, string>

  constructor(served: Served, headers: Record<string, string> = {}) {
    this.served = served
    this.#headers = headers
  }

  raw(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...this.#headers, ...Object.fromEntries(new Headers(init.headers)) }
    return this.served.handle(new Request(`http://localhost${path}`, { ...init, method, headers }))
  }

  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answered> {
    const typed = { 'content-type': 'application/json', ...headers }
    const init =
      body === undefined
        ? { headers: method === 'POST' ? typed : headers }
        : { headers: typed, body: JSON.stringify(body) }
    return answered(await this.raw(method, path, init))
  }

  get(path: string, headers?: Record<string, string>): Promise<Answered> {
    return this.ask('GET', path, undefined, headers)
  }

  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered> {
    return this.ask('POST', path, body, headers)
  }

  /** Pushes and gives the id. */
  async push(queue: string, data: unknown, options: Record<string, unknown> = {}): Promise<string> {
    const { status, body } = await this.post(`/v1/queues/${encodeURIComponent(queue)}/jobs`, { data, ...options })
    assert.equal(status, 202, JSON.stringify(body))
    return String(body.id)
  }

  /** Claims and gives the jobs. */
  async claim(queue: string, request?: Record<string, unknown>, headers?: Record<string, string>): Promise<Claim[]> {
    const { status, body } = await this.post(`/v1/queues/${encodeURIComponent(queue)}/claims`, request, headers)
    assert.equal(status, 200, JSON.stringify(body))
    assert.ok(Array.isArray(body.jobs))
    return body.jobs
  }

  async state(id: string): Promise<unknown> {
    return (await this.get(`/v1/jobs/${id}`)).body.state
  }
}

export interface Claim {
  id: string
  queue: string
  fence: number
  attempt: number
  attempts: number
  timeout?: number
  data: unknown
  leaseUntil: string
}

export async function answered(response: Response): Promise<Answered> {
  const text = await response.text()
  const isText = response.headers.get('content-type')?.startsWith('text/') ?? false
  const body: unknown = text === '' || isText ? {} : JSON.parse(text)
  assert.ok(typeof body === 'object' && body !== null)
  return { status: response.status, headers: response.headers, body: { ...body } }
}

/** Asserts that it is a problem document with the status, and with the code where one is given. */
export function isProblem({ status, headers, body }: Answered, expected: number, code?: string): void {
  assert.equal(status, expected, JSON.stringify(body))
  assert.equal(headers.get('content-type'), 'application/problem+json')
  assert.deepEqual([body.status, body.code], [expected, code])
  for (const member of [body.type, body.title, body.detail]) assert.ok(typeof member === 'string' && member !== '')
  assert.notEqual(body.title, 'Error')
}

export interface Bench {
  /** A service on the bench's store; on memory each has a store of its own. */
  open(options?: ServeOptions): Promise<Client>
  /** The service behind a real server on loopback. @returns its origin */
  listen(client: Client, limits?: Partial<ConnectionLimits>): Promise<{ origin: string; server: HttpServer }>
  url: string
}

interface StoreUnderTest {
  /** @param folder a fresh one; its name serves as a prefix, too */
  url(folder: string): string
  skip?: string | false
  remove?(folder: string): Promise<void>
}

const STORES: Readonly<Record<string, StoreUnderTest>> = {
  memory: { url: () => 'memory:' },
  sqlite: { url: (folder) => `sqlite:${join(folder, 'test.db')}?sync=normal` },
  redis: {
    skip: missingReason('redis'),
    url: (folder) => `${serverUrl('redis')}?prefix=${basename(folder)}`,
    remove: (folder) => removePrefix(serverUrl('redis') ?? '', basename(folder)),
  },
}

async function atBench(store: string, check: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-serve-'))
  const clients: Client[] = []
  const servers: HttpServer[] = []
  const url = STORES[store]?.url(folder) ?? 'memory:'
  const errors: unknown[] = []
  try {
    await check({
      url,
      open: async (options = {}) => {
        const served = await serve(url, { onError: (error) => errors.push(error), ...options })
        const token = options.tokens?.[0]
        const client = new Client(served, token === undefined ? {} : { authorization: `Bearer ${token}` })
        clients.push(client)
        return client
      },
      listen: async ({ served }, limits = {}) => {
        const server = new HttpServer({
          handle: (request) => served.handle(request),
          stopping: () => served.stop(),
          limits: { maxConnections: 1000, ...limits },
        })
        servers.push(server)
        return { origin: await server.listen('127.0.0.1', 0), server }
      },
    })
    assert.deepEqual(errors, [])
  } finally {
    for (const { served } of clients) served.stop()
    await Promise.all(servers.map((server) => server.stop(0)))
    await Promise.all(clients.map(({ served }) => served.close({ timeout: 100 })))
    await STORES[store]?.remove?.(folder)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A test on a memory store. It fails also where the service reports an error as its own. */
export function serveTest(title: string, check: (bench: Bench) => Promise<void>, timeout = 60_000): void {
  test(title, { timeout }, () => atBench('memory', check))
}

/** The same on several stores. */
export function onStores(
  topic: string,
  checks: Record<string, (bench: Bench) => Promise<void>>,
  timeout = 60_000,
): void {
  for (const [store, { skip }] of Object.entries(STORES)) {
    describe(`${topic}: ${store}`, { skip: skip ?? false }, () => {
      for (const [title, check] of Object.entries(checks)) test(title, { timeout }, () => atBench(store, check))
    })
  }
}
