/** A dashboard behind node:http, and ways to ask it. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { type DashboardOptions, dashboard } from '../../src/dashboard/index.ts'
import type { Millpond } from '../../src/index.ts'
import { closeServer, toNode } from '../../src/web/node.ts'
import { after } from '../support/cleaning.ts'

export const ALL = { who: 'ada', operator: true, payloads: true }

export interface Dash {
  /** Where the page is, with a slash at the end. */
  base: string
  server: Server
  /** Calls the API. */
  ask(
    name: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Answer; text: string }>
}

/** As tests look into it; each knows what it asked for. */
// biome-ignore lint/suspicious/noExplicitAny: an answer from outside
export type Answer = any

/** @param path where it is mounted, with a slash at the end */
export async function startDashboard(
  t: TestContext,
  ponds: Millpond | Record<string, Millpond>,
  options: DashboardOptions = { rights: () => ALL },
  path = '/ops/queues/',
): Promise<Dash> {
  const server = createServer(toNode(dashboard(ponds, options)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  after(t, () => closeServer(server, { timeout: 100 }))
  const { port } = server.address() as AddressInfo
  const base = `http://127.0.0.1:${port}${path}`
  return {
    base,
    server,
    async ask(name, body = {}, headers = {}) {
      const response = await fetch(`${base}api/${name}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      const text = await response.text()
      return {
        status: response.status,
        body: text.startsWith('{') && !text.includes('}\n{') ? JSON.parse(text) : undefined,
        text,
      }
    },
  }
}

/** The first whole event of the stream. */
export async function firstTick(base: string, headers: Record<string, string> = {}): Promise<Answer> {
  for await (const tick of ticksOf(base, headers)) return tick
  throw new Error('the stream ended')
}

/** The events of the stream, until the reader has enough. */
export async function* ticksOf(base: string, headers: Record<string, string> = {}): AsyncGenerator<Answer> {
  const leave = new AbortController()
  const response = await fetch(`${base}events`, { headers, signal: leave.signal })
  let text = ''
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  try {
    for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
      text += decoder.decode(part.value, { stream: true })
      for (let event = nextEvent(text); event !== undefined; event = nextEvent(text)) {
        text = text.slice(event.length)
        const [, data] = /^data: (.*)\n\n$/m.exec(event) ?? []
        if (data !== undefined) yield JSON.parse(data)
      }
    }
  } finally {
    leave.abort()
  }
  throw new Error(`the stream ended: ${response.status} ${text}`)
}

const nextEvent = (text: string): string | undefined => /^.*?\n\n/s.exec(text)?.[0]
