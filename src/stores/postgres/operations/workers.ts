import type { Input } from '../../../store.ts'
import type { Heartbeat, WorkerRecord } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { textArray } from '../wire.ts'

export async function heartbeat({ calls }: StoreContext, { workers, gone }: Heartbeat): Promise<boolean[]> {
  return calls.answer('heartbeat($1, $2, $3)', [JSON.stringify(workers), textArray(gone), calls.now()])
}

export async function workers({ calls }: StoreContext, { queue }: Input<'workers'>): Promise<WorkerRecord[]> {
  return calls.answers('workers($1, $2)', [queue ?? null, calls.now()])
}
