/** One variant under one load: a fresh server, a fresh database, and what became of every accepted name. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Child, holds } from '../child.ts'
import { machineTime } from '../clock.ts'
import { peakMemory } from '../cpu.ts'
import { ID, type Load, load } from '../load/load.ts'
import { startNginx } from './nginx.ts'
import { argumentsOf, type Places, type Tally } from './service.ts'
import { perRequest, type Usage, usage } from './usage.ts'
import { TABLE } from './users.ts'
import { type VariantName, variant } from './variants.ts'

const POLL = 10
/** Between two looks at the backlog under load, in ms: a look costs the server and PostgreSQL a little. */
const LOOK = 250

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
  /** The most that the servers had in memory, in bytes, all together; NaN where nobody tells. */
  memory: number
  /** Names that were accepted and not yet in the table, by seconds since the load began. */
  backlog: [seconds: number, names: number][]
}

export interface Timing {
  /** Of load. */
  seconds: number
  /** Before it; what it sends counts as accepted. */
  warming: number
  /** How long to wait for the rows after the last request, in seconds. */
  patience: number
}

/** How many of each process there are. Several servers stand behind nginx. */
export interface Crew {
  servers: number
  consumers: number
}

export async function run(
  name: VariantName,
  connections: number,
  { seconds, warming, patience }: Timing,
  places: Places,
  crew: Crew = { servers: 1, consumers: 1 },
): Promise<Outcome> {
  const client = new pg.Client(places.postgres)
  await client.connect()
  await client.query(TABLE)
  const { consume, keepsNothing } = variant(name)
  const args = argumentsOf(name, places)
  const consumers = await all(consume === undefined ? 0 : crew.consumers, 'consumer.ts', args)
  const servers = await all(crew.servers, 'server.ts', args)
  const nginx = servers.length > 1 ? await startNginx(servers.map(({ port }) => port)) : undefined
  const tally = async (when: 'now' | 'settled'): Promise<Tally> => {
    const told = await Promise.all(servers.map((server) => server.tell(holds<Tally>('accepted', 'last'), when)))
    return {
      accepted: told.reduce((sum, { accepted }) => sum + accepted, 0),
      last: Math.max(...told.map(({ last }) => last)),
    }
  }
  try {
    const url = `http://127.0.0.1:${nginx?.port ?? servers[0]?.port}/users`
    const warm = await load(url, { ...POST, connections, seconds: warming })
    const before = usage(servers, consumers)
    const began = machineTime()
    const backlog: Outcome['backlog'] = []
    const note = (accepted: number, rows: number) => backlog.push([(machineTime() - began) / 1000, accepted - rows])
    const loading = load(url, { ...POST, connections, seconds })
    if (!keepsNothing)
      await whileGoingOn(loading, async () => note((await tally('now')).accepted, await inserted(client)))
    const loaded = await loading
    const after = usage(servers, consumers)
    const cpu = before && after && perRequest(before, after, loaded.rate * seconds)
    const memory = servers.reduce((sum, { pid }) => sum + peakMemory(pid), 0)
    const rowsAtEnd = keepsNothing ? 0 : await inserted(client)
    const { accepted, last } = await tally('settled')
    const found = { ...loaded, failed: warm.failed + loaded.failed, accepted, rowsAtEnd, cpu, memory, backlog }
    if (keepsNothing) return { ...found, behind: 0, missing: 0, doubled: 0 }
    note(accepted, rowsAtEnd)
    const end = last + patience * 1000
    let looked = machineTime()
    for (let taken = rowsAtEnd; taken < accepted && machineTime() < end; taken = await inserted(client)) {
      if (machineTime() > looked + LOOK) {
        looked = machineTime()
        note(accepted, taken)
      }
      await sleep(POLL)
    }
    let rows = await counted(client)
    // An id is taken before its row is there, so they are counted as well.
    while (rows.names < accepted && machineTime() < end) {
      await sleep(POLL)
      rows = await counted(client)
    }
    note(accepted, rows.names)
    const missing = accepted - rows.names
    return {
      ...found,
      behind: missing > 0 ? Number.POSITIVE_INFINITY : Math.max(0, rows.at - last),
      missing,
      doubled: rows.all - rows.names,
    }
  } finally {
    await nginx?.stop()
    await Promise.all([...servers, ...consumers].map((child) => child.stop()))
    await client.end()
  }
}

const all = (count: number, script: string, args: readonly string[]): Promise<Child[]> =>
  Promise.all(Array.from({ length: count }, () => Child.start(new URL(script, import.meta.url), args)))

/** Looks again and again until the other is over, and waits for the last look. */
async function whileGoingOn(other: Promise<unknown>, look: () => Promise<unknown>): Promise<void> {
  let over = false
  const end = () => {
    over = true
  }
  other.then(end, end)
  while (!over) {
    await look()
    await Promise.race([other, sleep(LOOK)]).catch(() => {})
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
