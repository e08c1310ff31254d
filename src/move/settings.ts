/**
 * The settings of a queue go before its jobs, so that its limits hold at the target from the first job on. What the target's own code or
 * operator has set stays.
 */
import type { Capabilities, Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { QueueSettings, SettingName } from '../values/settings/settings.ts'
import type { SourceSettings } from './source.ts'
import { settingsOf } from './sources/store.ts'

/** What a store must have to keep a setting; `settings` for all of them. */
const NEEDS: Partial<Record<SettingName, keyof Capabilities>> = {
  ...{ running: 'limits', rate: 'rates', groupRunning: 'groups', groupRate: 'groups' },
}

/** @throws NotSupported: the target cannot keep them */
export function checkSettings(store: Store, queue: string, given: SourceSettings): void {
  const { capabilities, name } = store
  const names = [...namesOf(given.code), ...namesOf(given.operator)].filter((setting) => isSet(given, setting))
  const isKept = (setting: SettingName) => capabilities.settings && capabilities[NEEDS[setting] ?? 'settings']
  const lacks: string[] = [...new Set(names.filter((setting) => !isKept(setting)))]
  if (given.paused && !capabilities.settings) lacks.push('paused')
  if (given.grouped && !capabilities.groups) lacks.push('grouped')
  if (given.groups.length > 0 && !capabilities.groups) lacks.push('limits of groups')
  if (lacks.length === 0) return
  throw new MillpondError(
    'NotSupported',
    `the ${name} store cannot keep these settings of the queue ${queue}: ${lacks.join(', ')}. Move with settings: false ` +
      '(--no-settings) to leave them behind',
    { queue },
  )
}

export async function giveSettings(store: Store, queue: string, given: SourceSettings): Promise<void> {
  const { operations, capabilities } = store
  if (!capabilities.settings) return
  const own = await settingsOf(store, queue)
  const code = without(given.code, own?.code)
  const operator = without(given.operator, own?.operator)
  // Two calls, as each has one giver. The pause comes first: the workers of the target may claim at any time.
  await operations.configure({
    ...{ queue, ...code, by: 'code' },
    ...(given.paused && { paused: true }),
    ...(given.grouped && { grouped: true }),
  })
  if (namesOf(operator).length > 0) await operations.configure({ queue, ...operator, by: 'operator' })
  const limited = new Set(own?.groups.map(({ group }) => group))
  for (const { group, limits } of given.groups) {
    if (!limited.has(group)) await operations.limitGroup({ queue, group, limits })
  }
}

type Given = Pick<QueueSettings, SettingName>

const namesOf = (given: Given) => Object.keys(given) as SettingName[]

/** null is no limit, which every store has. */
const isSet = ({ code, operator }: SourceSettings, setting: SettingName): boolean =>
  (code[setting] ?? null) !== null || (operator[setting] ?? null) !== null

function without(given: Given, own: Given = {}): Given {
  return Object.fromEntries(Object.entries(given).filter(([name]) => !Object.hasOwn(own, name)))
}
