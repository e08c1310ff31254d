import type { SettingName, SettingsChange, SettingsReport } from '../../../store.ts'
import { setsNothing } from '../../../store.ts'
import type { StoreContext } from '../context.ts'

export async function configure(context: StoreContext, change: SettingsChange): Promise<readonly SettingName[]> {
  if (setsNothing(change)) return []
  return context.registry.append({ queue: change.queue, change })
}

export async function settings(
  { registry }: StoreContext,
  { queue }: { queue: string },
): Promise<SettingsReport | null> {
  const known = registry.queues.get(queue)
  return known === undefined ? null : { values: { ...known.values, grouped: false }, ...known.given }
}
