import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { MemoryState } from '../state.ts'

export function configure(state: MemoryState, settings: QueueSettings): void {
  if (setsNothing(settings)) return
  const { queue, ...given } = settings
  state.findOrCreate(queue).configure(given)
  // Either may be what someone waits for: a raised capacity, or the end of a pause.
  if (given.capacity !== undefined) state.bells.ring('room', queue)
  if (given.paused === false) state.bells.ring('work', queue)
}
