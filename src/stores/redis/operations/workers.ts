/** Who works: contract/redis/heartbeat.lua. */
import type { Input } from '../../../store.ts'
import type { Heartbeat, WorkerRecord } from '../../../values/operations/requests.ts'
import { chunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, numberIn, textIn, unexpected, unpack } from '../wire.ts'

export async function heartbeat(context: StoreContext, { workers: told, gone }: Heartbeat): Promise<boolean[]> {
  const beats = told.map(({ id, queue, host, pid, slots, busy, lanes }) => {
    const reserved = (lanes ?? []).flatMap(({ minPriority, reserve }) => [minPriority, reserve])
    return [id, queue, host, pid, slots, busy, ...reserved]
  })
  const known = await callScript(context, 'heartbeat', { head: [gone, beats] })
  return known.map((answer) => answer === 1)
}

export async function workers(context: StoreContext, { queue }: Input<'workers'>): Promise<WorkerRecord[]> {
  const [now, ...items] = await callScript(context, 'workers')
  const all = chunks(items, 2).flatMap(([id, entries]) =>
    workersIn(textIn(id), unpack(bytesIn(entries)), numberIn(now)),
  )
  const order = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  return all
    .filter((worker) => queue === undefined || worker.queue === queue)
    .sort((a, b) => a.since - b.since || order(a.id, b.id) || order(a.queue, b.queue))
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
