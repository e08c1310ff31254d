/** Claims behind the runtime's own server of web standards and behind node:http, on whatever runtime this is: they hold when they are answered. */
import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { type Client, serveTest } from './client.ts'

type Handle = (request: Request) => Promise<Response>
interface Listening {
  origin: string
  close(): Promise<void>
}

/** What is used of Deno and Bun, whose types are not installed. */
interface Runtime {
  Deno?: {
    serve(
      options: { port: number; hostname: string; onListen: () => void },
      handle: Handle,
    ): { addr: { port: number }; shutdown(): Promise<void> }
  }
  Bun?: {
    serve(options: { port: number; hostname: string; fetch: Handle }): { port: number; stop(): Promise<void> }
  }
}
const { Deno, Bun }: Runtime = Object(globalThis)

function listen(handle: Handle): Listening | undefined {
  const place = { port: 0, hostname: '127.0.0.1' }
  if (Deno !== undefined) {
    const server = Deno.serve({ ...place, onListen: () => {} }, handle)
    return { origin: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() }
  }
  if (Bun === undefined) return undefined
  const server = Bun.serve({ ...place, fetch: handle })
  return { origin: `http://127.0.0.1:${server.port}`, close: () => server.stop() }
}

/** Claims one after the other, and completes them once all is over that could end them. */
async function work(client: Client, origin: string, over: () => boolean): Promise<void> {
  const post = async (path: string, body: unknown, more: Record<string, string> = {}) => {
    const headers = { 'content-type': 'application/json', ...more }
    const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    assert.equal(response.status, 200, path)
    return response.json()
  }
  const held: { id: string; fence: number; attempt: number }[] = []
  const claim = async (prefer: Record<string, string>) => {
    const { jobs } = Object(await post('/v1/queues/q/claims', {}, prefer))
    held.push(...jobs)
  }
  for (let round = 0; round < 10; round++) {
    await client.push('q', round)
    await claim({})
    const waiting = claim({ prefer: 'wait=20' })
    await client.push('q', round)
    await waiting
  }
  await until(over)
  assert.deepEqual([held.length, new Set(held.map(({ id }) => id)).size], [20, 20])
  for (const { id, fence, attempt } of held) {
    assert.deepEqual([fence, attempt], [1, 1])
    await post(`/v1/queues/q/jobs/${id}/complete`, { fence })
  }
  assert.deepEqual(await client.claim('q'), [])
}

serveTest('node:http: what is claimed stays claimed', async ({ open, listen: behindNode }) => {
  const client = await open()
  const { origin } = await behindNode(client)
  await work(client, origin, () => true)
})

if (Deno !== undefined || Bun !== undefined) {
  serveTest('Deno.serve, Bun.serve: what is claimed stays claimed', async ({ open }) => {
    const client = await open()
    const { handle } = client.served
    const signals: AbortSignal[] = []
    const server = listen((request) => {
      signals.push(request.signal)
      return handle(request)
    })
    assert.ok(server)
    try {
      // Deno aborts the signal of every request, some time after its answer. That is what this is about.
      await work(client, server.origin, () => Deno === undefined || signals.every(({ aborted }) => aborted))
    } finally {
      await server.close()
    }
  })
}
