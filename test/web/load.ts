/** Clients that ask one thing after the other, each through a connection of its own that it keeps, until an answer says that it is to go. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { until } from '../support/until.ts'

export interface Asked {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string
}

export interface Load {
  /** Resolves when each client has had some answers. */
  underWay(): Promise<void>
  /** Resolves when every client was told to go. @throws AssertionError where a request was cut or got no good answer */
  over(): Promise<void>
  /** The bodies of all answers. */
  readonly bodies: readonly string[]
}

interface Answered {
  status: number
  leave: boolean
  body: string
}

export function load(origin: string, clients: number, next: (count: number) => Asked): Load {
  const counts = Array.from({ length: clients }, () => 0)
  const bodies: string[] = []
  const faults: string[] = []
  const run = async (client: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let leave = false; !leave; ) {
      const count = counts[client] ?? 0
      const asked = next(count)
      try {
        const answered = await ask(origin, agent, asked)
        leave = answered.leave
        bodies.push(answered.body)
        if (answered.status >= 300) faults.push(`${asked.method} ${asked.path}: ${answered.status} ${answered.body}`)
      } catch (error) {
        faults.push(`${asked.method} ${asked.path}, number ${count} of client ${client}: ${String(error)}`)
        leave = true
      }
      counts[client] = count + 1
    }
    agent.destroy()
  }
  const all = Promise.all(counts.map((_, client) => run(client)))
  return {
    bodies,
    underWay: () =>
      until(() => {
        assert.deepEqual(faults, [])
        return counts.every((count) => count >= 5)
      }, 'every client to have some answers'),
    over: async () => {
      await all
      assert.deepEqual(faults, [])
    },
  }
}

function ask(origin: string, agent: Agent, { method, path, headers = {}, body = '' }: Asked): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}${path}`, { method, agent, headers }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8')
      })
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, leave: response.headers.connection === 'close', body: text })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
