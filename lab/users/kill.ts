/** One variant whose processes are killed while clients are served, and what became of every name that was accepted. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Child } from '../child.ts'
import { Clients } from './clients.ts'
import { argumentsOf, type Places } from './service.ts'
import { TABLE } from './users.ts'
import { type VariantName, variant } from './variants.ts'

const CLIENTS = 20
/** Before the first kill, between two, and after the last, in ms. */
const BETWEEN = 800
const POLL = 100
/** No row is awaited once the table has not grown for so long, in ms: longer than the lease of the jobs that a killed consumer held. */
const STILL = { plain: 1500, ours: 6000 }

export interface Killed {
  kills: number
  /** Answered with a 202. */
  accepted: number
  /** Accepted and never in the table. */
  lost: number
  /** Rows beyond the first of the same name. */
  twice: number
  /** Requests that got no answer, or another one, while processes were down. */
  failed: number
}

/** SIGKILL for the server and for the consumer at the same moment, so many times. Both are started again. */
export async function killed(name: VariantName, kills: number, places: Places): Promise<Killed> {
  const client = new pg.Client(places.postgres)
  await client.connect()
  await client.query(TABLE)
  const { consume, ours } = variant(name)
  const start = (script: string, ...more: string[]) =>
    Child.start(new URL(script, import.meta.url), [...argumentsOf(name, places), ...more])
  const startConsumer = async () => (consume === undefined ? undefined : start('consumer.ts'))
  let consumer = await startConsumer()
  let server = await start('server.ts')
  const { port } = server
  const clients = new Clients(port, CLIENTS)
  try {
    for (let kill = 0; kill < kills; kill++) {
      await sleep(BETWEEN)
      await Promise.all([server.kill(), consumer?.kill()])
      ;[server, consumer] = await Promise.all([start('server.ts', String(port)), startConsumer()])
    }
    await sleep(BETWEEN)
    await clients.stop()
    const rows = await settled(client, clients.accepted, ours ? STILL.ours : STILL.plain)
    const lost = clients.accepted.filter((each) => !rows.has(each)).length
    const doubled = [...rows.values()].reduce((sum, count) => sum + count - 1, 0)
    return { kills, accepted: clients.accepted.length, lost, twice: doubled, failed: clients.failed }
  } finally {
    await clients.stop()
    await Promise.all([server.stop(), consumer?.stop()])
    await client.end()
  }
}

/**
 * Rows of names that were never answered count for nothing: their server died after the insert.
 * @returns how many rows each name has, once all that were accepted are there or nothing comes any more
 */
async function settled(client: pg.Client, accepted: readonly string[], still: number): Promise<Map<string, number>> {
  let rows = await counts(client)
  const isMissing = () => accepted.some((name) => !rows.has(name))
  for (let changed = performance.now(); isMissing() && performance.now() < changed + still; ) {
    await sleep(POLL)
    const before = rows.size
    rows = await counts(client)
    if (rows.size > before) changed = performance.now()
  }
  return rows
}

async function counts(client: pg.Client): Promise<Map<string, number>> {
  const { rows } = await client.query<{ name: string; count: string }>(
    'select name, count(*) as count from users group by name',
  )
  return new Map(rows.map(({ name, count }) => [name, Number(count)]))
}
