import { type QueueSettings, setsNothing } from '../../../store.ts'
import type { GroupLimits } from '../../../values/limits.ts'
import type { MemoryState } from '../state.ts'

export function configure(state: MemoryState, settings: QueueSettings): void {
  if (setsNothing(settings)) return
  const { queue, ...given } = settings
  state.findOrCreate(queue).configure(given)
  // Any of these may be what someone waits for: a raised capacity, the end of a pause, a higher limit.
  if (given.capacity !== undefined) state.bells.ring('room', queue)
  state.bells.ring('work', queue)
}

export function limitGroup(state: MemoryState, queue: string, group: string, limits: GroupLimits | null): void {
  state
    .findOrCreate(queue)
    .group()
    .limit(group, limits === null ? null : { ...limits })
  state.bells.ring('work', queue)
}
