/** Clients that remember what they were told, and come again after a failure: whoever kills servers cannot ask the servers. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** Between two requests of a client, in ms, drawn at random: the consumers keep up, so that a row that is late is not taken for lost. */
const PAUSE = { least: 10, most: 30 }
const AGAIN = 20

export interface Answer {
  status: number
  body: string
}

/** Rejects where nobody answers. */
export function send(
  port: number,
  method: string,
  path: string,
  agent: Agent,
  { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, method, path, agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
      response.on('error', reject)
    })
    asked.on('error', reject).end(body)
  })
}

export const post = (port: number, agent: Agent, name: string): Promise<Answer> =>
  send(port, 'POST', '/users', agent, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })

export class Clients {
  /** Names that were answered with a 202. */
  readonly accepted: string[] = []
  failed = 0
  readonly #agent = new Agent({ keepAlive: true })
  readonly #loops: Promise<void>[]
  #isOver = false

  constructor(port: number, count: number) {
    this.#loops = Array.from({ length: count }, (_, client) => this.#loop(port, client))
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
    this.#agent.destroy()
  }

  async #loop(port: number, client: number): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      const name = `user ${client}-${n}`
      const status = await post(port, this.#agent, name).then(
        (answer) => answer.status,
        () => 0,
      )
      if (status === 202) this.accepted.push(name)
      else this.failed++
      await sleep(status === 0 ? AGAIN : PAUSE.least + Math.random() * (PAUSE.most - PAUSE.least))
    }
  }
}
