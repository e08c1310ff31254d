import type { Heartbeat, Input, WorkerRecord } from '../../../store.ts'
import type { Context } from '../context.ts'
import { textArray } from '../wire.ts'

export async function heartbeat({ calls }: Context, { workers, gone }: Heartbeat): Promise<boolean[]> {
  return calls.answer('heartbeat($1, $2, $3)', [JSON.stringify(workers), textArray(gone), calls.now()])
}

export async function workers({ calls }: Context, { queue }: Input<'workers'>): Promise<WorkerRecord[]> {
  return calls.answers('workers($1, $2)', [queue ?? null, calls.now()])
}
