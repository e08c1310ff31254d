import { isDeepStrictEqual } from 'node:util'
import { type SettingName, type SettingsChange, type SettingsReport, setsNothing } from '../../../store.ts'
import { NOTHING_GIVEN, settle } from '../../given-settings.ts'
import { lacking, lacks } from '../capabilities.ts'
import { type StoreContext, valuesOf } from '../context.ts'

const NEEDS = { running: 'limits', rate: 'rates', grouped: 'groups', groupRunning: 'groups', groupRate: 'groups' } as const

export const limitGroup = lacks('groups', 'limitGroup')

export async function configure(context: StoreContext, change: SettingsChange): Promise<readonly SettingName[]> {
  if (setsNothing(change)) return []
  for (const [name, capability] of Object.entries(NEEDS)) {
    if (Reflect.get(change, name) != null) throw lacking(capability, name)
  }
  const { queue } = change
  const known = context.registry.queues.get(queue)
  const { apply, given, overridden } = settle(known?.given ?? NOTHING_GIVEN, change)
  const values = { ...valuesOf(context, queue), ...apply }
  // A program tells its settings whenever it starts; the log keeps only what is new.
  const isNew = !isDeepStrictEqual([known?.given, known?.values], [given, values])
  if (isNew || known.configuredAt < 0) await context.registry.append({ queue, change })
  context.bells.ring('room', queue)
  return overridden
}

export async function settings(context: StoreContext, { queue }: { queue: string }): Promise<SettingsReport | null> {
  const known = context.registry.queues.get(queue)
  if (known === undefined) return null
  return structuredClone({ values: { ...known.values, grouped: false }, ...known.given })
}
