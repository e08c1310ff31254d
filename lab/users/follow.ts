/** Clients that follow their requests by the id of the `202`, until they know the id of the row. */
import { Agent } from 'node:http'
import { Child } from '../child.ts'
import { post, send } from './clients.ts'
import { argumentsOf, type Places } from './service.ts'
import { Users } from './users.ts'
import type { VariantName } from './variants.ts'

const CLIENTS = 4

export interface Followed {
  /** From sending the request until its answer, and until the client knows the row, in ms, of each request. */
  accepted: number[]
  known: number[]
  /** Followed to a row that does not hold the name. */
  wrong: number
}

export async function followed(name: VariantName, requests: number, places: Places): Promise<Followed> {
  const users = new Users(places.postgres)
  await users.create()
  const args = argumentsOf(name, places)
  const consumer = await Child.start(new URL('consumer.ts', import.meta.url), args)
  const server = await Child.start(new URL('server.ts', import.meta.url), args)
  const agent = new Agent({ keepAlive: true })
  const found: Followed = { accepted: [], known: [], wrong: 0 }
  const one = async (n: number) => {
    const began = performance.now()
    const answer = await post(server.port, agent, `user ${n}`)
    found.accepted.push(performance.now() - began)
    const row = await rowOf(server.port, agent, idIn(answer.body))
    found.known.push(performance.now() - began)
    if ((await users.nameOf(row)) !== `user ${n}`) found.wrong++
  }
  try {
    let next = 0
    const client = async () => {
      while (next < requests) await one(next++)
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    return found
  } finally {
    agent.destroy()
    await Promise.all([server.stop(), consumer.stop()])
    await users.close()
  }
}

/** Long polls until the job is done. @returns the row's id, which is the job's result */
async function rowOf(port: number, agent: Agent, id: string): Promise<number> {
  for (;;) {
    const { status, body } = await send(port, 'GET', `/users/${id}`, agent, { headers: { prefer: 'wait=10' } })
    if (status !== 200) throw new Error(`GET /users/${id} answers ${status}: ${body.slice(0, 200)}`)
    const job: unknown = JSON.parse(body)
    if (typeof job !== 'object' || job === null || !('state' in job)) throw new Error(`no job: ${body.slice(0, 200)}`)
    if (job.state === 'dead') throw new Error(`the job died: ${body.slice(0, 200)}`)
    if (job.state === 'done') return 'result' in job ? Number(job.result) : Number.NaN
  }
}

function idIn(body: string): string {
  const answer: unknown = JSON.parse(body)
  if (typeof answer === 'object' && answer !== null && 'id' in answer) return String(answer.id)
  throw new Error(`no id in the answer: ${body.slice(0, 200)}`)
}
