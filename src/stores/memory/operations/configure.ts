import type { GroupLimitsChange, SettingsReport } from '../../../values/operations/requests.ts'
import { type SettingName, type SettingsChange, setsNothing } from '../../../values/settings/settings.ts'
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

export function settings(state: MemoryState, { queue: name }: Pick<SettingsChange, 'queue'>): SettingsReport | null {
  const queue = state.queues.get(name)
  return queue === undefined ? null : structuredClone({ values: queue.settings, ...queue.given })
}

export function limitGroup(state: MemoryState, { queue, group, limits }: GroupLimitsChange): void {
  state
    .findOrCreate(queue)
    .group()
    .limit(group, limits === null ? null : { ...limits })
  state.bells.ring('work', queue)
}
