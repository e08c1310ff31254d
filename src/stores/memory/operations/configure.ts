import { type GivenSettings, type SettingName, type SettingsChange, setsNothing } from '../../../store.ts'
import type { GroupLimits } from '../../../values/limits.ts'
import type { MemoryState } from '../state.ts'

export function configure(state: MemoryState, change: SettingsChange): SettingName[] {
  if (setsNothing(change)) return []
  const { queue } = change
  const overridden = state.findOrCreate(queue).configure(change)
  // Any of these may be what someone waits for: a raised capacity, the end of a pause, a higher limit.
  state.bells.ring('room', queue)
  state.bells.ring('work', queue)
  return overridden
}

export function settings(state: MemoryState, queue: string): GivenSettings | null {
  return structuredClone(state.queues.get(queue)?.given ?? null)
}

export function limitGroup(state: MemoryState, queue: string, group: string, limits: GroupLimits | null): void {
  state
    .findOrCreate(queue)
    .group()
    .limit(group, limits === null ? null : { ...limits })
  state.bells.ring('work', queue)
}
