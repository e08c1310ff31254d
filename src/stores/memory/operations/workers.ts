import type { Input } from '../../../store.ts'
import type { Heartbeat, WorkerRecord } from '../../../values/operations/requests.ts'
import { ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'

export function heartbeat(state: MemoryState, { workers: told, gone }: Heartbeat): boolean[] {
  const now = state.now()
  for (const id of gone) state.workers.remove(id)
  return told.map((beat) => {
    state.workers.heard(beat, now)
    const queue = state.queues.get(beat.queue)
    if (queue !== undefined) queue.heardAt = now
    return queue !== undefined
  })
}

export function workers(state: MemoryState, { queue }: Input<'workers'>): WorkerRecord[] {
  const records = state.workers.all(state.now()).filter((each) => queue === undefined || each.queue === queue)
  return records.map((each) => ({ ...each, since: ORIGIN + each.since, seen: ORIGIN + each.seen }))
}
