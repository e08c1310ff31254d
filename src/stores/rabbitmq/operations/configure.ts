import type { SettingName, SettingsChange } from '../../../values/settings/settings.ts'
import { setsNothing } from '../../../values/settings/settings.ts'
import type { StoreContext } from '../context.ts'

/** What code gives holds in its process. RabbitMQ keeps no settings, so an operator's are refused before this. */
export async function configure({ queues }: StoreContext, change: SettingsChange): Promise<readonly SettingName[]> {
  if (!setsNothing(change)) queues.configure(change)
  return []
}
