/** One variant under one load: a fresh server, a fresh database, and what became of every accepted name. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Child, holds } from '../child.ts'
import { machineTime } from '../clock.ts'
import { ID, type Load, load } from '../load/load.ts'
import type { Places, Tally } from './service.ts'
import { perRequest, type Usage, usage } from './usage.ts'
import { TABLE } from './users.ts'
import { type VariantName, variant } from './variants.ts'

const POLL = 10

/** Names of their own, so that lost and doubled rows can be told. */
const POST = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name: `user ${ID}` }),
}

export interface Outcome extends Load {
  /** By the server's own count, the warming included. */
  accepted: number
  /** When the load ends. */
  rowsAtEnd: number
  /** From the last request until every accepted name is in the table, in ms; infinite if that took longer than we waited. */
  behind: number
  /** Accepted and not in the table, when we no longer wait. */
  missing: number
  /** Names that are in the table more than once. */
  doubled: number
  /** CPU of each process while it is loaded, in µs per request; undefined where nobody tells. */
  cpu: Usage | undefined
}

export interface Timing {
  /** Of load. */
  seconds: number
  /** Before it; what it sends counts as accepted. */
  warming: number
  /** How long to wait for the rows after the last request, in seconds. */
  patience: number
}

export async function run(
  name: VariantName,
  connections: number,
  { seconds, warming, patience }: Timing,
  places: Places,
): Promise<Outcome> {
  const client = new pg.Client(places.postgres)
  await client.connect()
  await client.query(TABLE)
  const { consume, keepsNothing } = variant(name)
  const args = [name, places.postgres, places.redis]
  const consumer = consume && (await Child.start(new URL('consumer.ts', import.meta.url), args))
  const server = await Child.start(new URL('server.ts', import.meta.url), args)
  try {
    const url = `http://127.0.0.1:${server.port}/users`
    const warm = await load(url, { ...POST, connections, seconds: warming })
    const before = usage(server.pid, consumer?.pid)
    const loaded = await load(url, { ...POST, connections, seconds })
    const after = usage(server.pid, consumer?.pid)
    const cpu = before && after && perRequest(before, after, loaded.rate * seconds)
    const rowsAtEnd = keepsNothing ? 0 : await inserted(client)
    const { accepted, last } = await server.tell(holds<Tally>('accepted', 'last'))
    const failed = warm.failed + loaded.failed
    if (keepsNothing) return { ...loaded, failed, accepted, rowsAtEnd, behind: 0, missing: 0, doubled: 0, cpu }
    const end = last + patience * 1000
    while ((await inserted(client)) < accepted && machineTime() < end) await sleep(POLL)
    let rows = await counted(client)
    // An id is taken before its row is there, so they are counted as well.
    while (rows.names < accepted && machineTime() < end) {
      await sleep(POLL)
      rows = await counted(client)
    }
    const missing = accepted - rows.names
    return {
      ...loaded,
      failed,
      accepted,
      rowsAtEnd,
      behind: missing > 0 ? Number.POSITIVE_INFINITY : Math.max(0, rows.at - last),
      missing,
      doubled: rows.all - rows.names,
      cpu,
    }
  } finally {
    await server.stop()
    await consumer?.stop()
    await client.end()
  }
}

/** Ids given out: next to free, where counting the rows would take the CPU from those who insert. */
async function inserted(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ taken: string }>(
    'select case when is_called then last_value else 0 end as taken from users_id_seq',
  )
  return Number(rows[0]?.taken)
}

/** @returns `at`: before it was looked, in ms of the machine's clock */
async function counted(client: pg.Client): Promise<{ all: number; names: number; at: number }> {
  const at = machineTime()
  const { rows } = await client.query<{ all: string; names: string }>(
    'select count(*) as all, count(distinct name) as names from users',
  )
  return { all: Number(rows[0]?.all), names: Number(rows[0]?.names), at }
}
