/** Who works: kept under keys of the whole store, as contract/redis/heartbeat.lua tells. */

import type { Input } from '../../../store.ts'
import type { Heartbeat, WorkerRecord } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { chunks } from '../per-partition.ts'
import { bytesIn, numberIn, pack, textIn, unexpected, unpack } from '../wire.ts'

export async function heartbeat(context: StoreContext, { workers: told, gone }: Heartbeat): Promise<boolean[]> {
  const beats = told.map(({ id, queue, host, pid, slots, busy, lanes }) => {
    const reserved = (lanes ?? []).flatMap(({ minPriority, reserve }) => [minPriority, reserve])
    return [id, queue, host, pid, slots, busy, ...reserved]
  })
  const known = await registry(context, 'heartbeat', [pack([context.now(), gone, beats])])
  return known.map((answer) => answer === 1)
}

export async function workers(context: StoreContext, { queue }: Input<'workers'>): Promise<WorkerRecord[]> {
  const [, , now, ...items] = await registry(context, 'workers', [context.now() ?? '', 0])
  const all = chunks(items, 2).flatMap(([id, entries]) =>
    workersIn(textIn(id), unpack(bytesIn(entries)), numberIn(now)),
  )
  const order = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  return all
    .filter((worker) => queue === undefined || worker.queue === queue)
    .sort((a, b) => a.since - b.since || order(a.id, b.id) || order(a.queue, b.queue))
}

/** Forgets workers that are not heard of any more. Notes how many queues there are, and how many links wait for unknown parents. */
export async function forgetWorkers(context: StoreContext): Promise<void> {
  const [queues, awaited] = await registry(context, 'workers', [context.now() ?? '', 1])
  context.queueCount = numberIn(queues)
  context.awaitedCount = numberIn(awaited)
}

/** Per queue the ms since a worker was last heard of; none, where none was. */
export async function lastClaims(context: StoreContext, names: readonly string[]): Promise<Map<string, number>> {
  if (names.length === 0) return new Map()
  const [now, ...times] = await registry(context, 'last-claims', [context.now() ?? '', ...names])
  return new Map(
    times.flatMap((time, at) =>
      time === null ? [] : [[names[at] ?? '', Math.max(0, numberIn(now) - Number(textIn(time)))]],
    ),
  )
}

function registry(
  { calls, queues }: StoreContext,
  script: string,
  args: readonly (string | number | Buffer)[],
): Promise<readonly unknown[]> {
  return calls.script(script, queues.registryOf(script), args)
}

/** A worker as `heartbeat.lua` keeps it, per queue. */
function workersIn(id: string, entries: unknown, now: number): WorkerRecord[] {
  if (!Array.isArray(entries)) throw unexpected(entries, 'a list')
  return entries.map((entry: readonly unknown[]) => {
    const [queue, host, ...numbers] = entry
    const [pid = 0, slots = 0, busy = 0, since = 0, seen = 0, ...reserved] = numbers.map(numberIn)
    const told = chunks(reserved, 2).map(([minPriority = 0, reserve = 0]) => ({ minPriority, reserve }))
    const lanes = told.length === 0 ? null : told
    const silence = Math.max(0, now - seen)
    return { id, queue: String(queue), host: String(host), pid, slots, busy, since, seen, silence, lanes }
  })
}
