import type { Input } from '../../../store.ts'
import type { SettingsReport } from '../../../values/operations/requests.ts'
import { type SettingName, type SettingsChange, setsNothing } from '../../../values/settings/settings.ts'
import type { StoreContext } from '../context.ts'
import { textArray } from '../wire.ts'

const LIMITS = ['running', 'rate', 'groupRunning', 'groupRate'] as const

export async function configure(context: StoreContext, change: SettingsChange): Promise<SettingName[]> {
  const { notifier } = context
  if (setsNothing(change)) return []
  const { queue, by = 'code', clear = [], ...settings } = change
  const values = [queue, JSON.stringify(settings), by, textArray(clear)]
  const overridden = await context.one<SettingName[]>('configure($1, $2, $3, $4)', values)
  if (settings.capacity !== undefined || clear.includes('capacity')) notifier.bells.ring('room', queue)
  const isLimited = settings.grouped || LIMITS.some((name) => settings[name] !== undefined || clear.includes(name))
  if (settings.paused === false || isLimited) notifier.bells.ring('work', queue)
  return overridden
}

export async function settings({ calls }: StoreContext, { queue }: Input<'settings'>): Promise<SettingsReport | null> {
  return calls.answer('settings($1)', [queue])
}

export async function limitGroup(context: StoreContext, { queue, group, limits }: Input<'limitGroup'>): Promise<void> {
  const { notifier } = context
  await context.one('limit_group($1, $2, $3)', [queue, group, limits === null ? null : JSON.stringify(limits)])
  notifier.bells.ring('work', queue)
}
