/** One variant under load: an upstream of its own, fresh servers, an empty store. */
import { deepEqual } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Child } from '../child.ts'
import { peakMemory } from '../cpu.ts'
import { type Load, load } from '../load/load.ts'
import { ANSWER } from './answer.ts'
import { isServerTally, isUpstreamTally, type ServerTally } from './messages.ts'
import { type VariantName, variant } from './variants.ts'

/** What the variant does before it is measured, in seconds. */
const OWN = 1
const POLL = 10
const SERVER = new URL('server.ts', import.meta.url)
const UPSTREAM = new URL('upstream.ts', import.meta.url)

export interface Outcome extends Load {
  /** Of the upstream, by its own count, under the load. */
  calls: number
  /** The same as all servers say. */
  told: number
  /** The most calls that the upstream had at once, from start to end. */
  atOnce: number
  /** What the upstream took for a call, the median in ms; NaN without calls. */
  flight: number
  /** CPU of the servers, in µs per request. */
  cpu: number
  /** The most that the servers had in memory, in bytes, all together; NaN where nobody tells. */
  memory: number
}

/**
 * @param warming seconds of a constant answer first, whatever the variant, so that Express is as hot for a thousand answers a flight as for
 * tens of thousands a second
 * @param store URL of an empty store, for variants that share one
 */
export async function run(
  name: VariantName,
  connections: number,
  { seconds, warming }: { seconds: number; warming: number },
  store: string,
): Promise<Outcome> {
  const upstream = await Child.start(UPSTREAM)
  const servers: Child[] = []
  try {
    for (let started = 0; started < variant(name).processes; started++) {
      servers.push(await Child.start(SERVER, [name, address(upstream), store]))
    }
    for (const server of servers) deepEqual(await (await fetch(address(server))).json(), ANSWER)
    await loadAll(servers, connections, warming, 'constant')
    await loadAll(servers, connections, OWN)
    const before = await settled(upstream, servers)
    const loaded = await loadAll(servers, connections, seconds)
    const after = await settled(upstream, servers)
    return {
      ...loaded,
      calls: after.calls - before.calls,
      told: after.told - before.told,
      atOnce: after.atOnce,
      flight: after.flight,
      cpu: (after.cpu - before.cpu) / (loaded.rate * seconds),
      memory: servers.reduce((all, { pid }) => all + peakMemory(pid), 0),
    }
  } finally {
    for (const server of servers) await server.stop()
    await upstream.stop()
  }
}

const address = ({ port }: Child) => `http://127.0.0.1:${port}/`

/** A generator for each server, all at once. Rates and failures add up; of latencies the worse one counts. */
async function loadAll(servers: readonly Child[], connections: number, seconds: number, path = ''): Promise<Load> {
  const share = Math.ceil(connections / servers.length)
  const all = await Promise.all(servers.map((server) => load(address(server) + path, { connections: share, seconds })))
  const sum = (figure: 'rate' | 'failed') => all.reduce((so, each) => so + each[figure], 0)
  const worst = (figure: 'p50' | 'p95' | 'p99') => Math.max(...all.map((each) => each[figure]))
  const curve = all.toSorted((a, b) => b.p99 - a.p99)[0]?.curve ?? []
  return { rate: sum('rate'), p50: worst('p50'), p95: worst('p95'), p99: worst('p99'), failed: sum('failed'), curve }
}

/** What all have done, once nothing is under way: the generator has gone, but what it asked for last may still be. */
async function settled(upstream: Child, servers: readonly Child[]) {
  for (let idle = 0; ; await sleep(POLL)) {
    const tallies = await Promise.all(servers.map((server) => server.tell(isServerTally)))
    const { calls, open, atOnce, ms } = await upstream.tell(isUpstreamTally)
    const sum = (figure: keyof ServerTally) => tallies.reduce((all, tally) => all + tally[figure], 0)
    idle = open === 0 && sum('underWay') === 0 ? idle + 1 : 0
    // Once more: what came in while one was asked is known to the next look.
    if (idle === 2) return { calls, told: sum('calls'), cpu: sum('cpu'), atOnce, flight: ms ?? Number.NaN }
  }
}
