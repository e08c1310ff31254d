import type { GroupLimitsChange, SettingsReport } from '../../../values/operations/requests.ts'
import { type SettingName, type SettingsChange, setsNothing } from '../../../values/settings/settings.ts'
import { givenFrom, givenTexts, NOTHING_GIVEN, settle } from '../../given-settings.ts'
import { text, textOrNull } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'

export function configure(context: StoreContext, change: SettingsChange): SettingName[] {
  if (setsNothing(change)) return []
  const { statements, queues, fences } = context
  const { queue: name } = change
  const before = queues.find(name)?.settings
  queues.write()
  const { apply, given, overridden } = settle(settings(context, change) ?? NOTHING_GIVEN, change)
  queues.configure(name, apply)
  statements.run('configure/give', { queue: name, ...givenTexts(given) })
  const queue = queues.findOrCreate(name)
  queue.isChanged = true
  if (LIMITS.some((setting) => apply[setting] !== undefined)) queue.count('sign', 'limits', 1)
  const { isGrouped, limits } = queue.settings
  if (isGrouped && !before?.isGrouped) {
    for (const step of GROUPING) statements.run(`limits/${step}`, { queue: name })
    fences.accept()
    queues.lineUp(name)
  }
  if (isGrouped && limits !== before?.limits) statements.run('limits/touch', { queue: name })
  return overridden
}

export function settings(
  { statements }: StoreContext,
  { queue }: Pick<SettingsChange, 'queue'>,
): SettingsReport | null {
  const row = statements.get('configure/settings', { queue })
  if (row === undefined) return null
  return { values: JSON.parse(text(row.values)), ...givenFrom(textOrNull(row.code), textOrNull(row.operator)) }
}

/** What claims and bells look at. */
const LIMITS = ['paused', 'running', 'rate', 'grouped', 'groupRunning', 'groupRate'] as const
const GROUPING = ['count', 'count_left', 'count_removed', 'adopt_groups', 'adopt']

export function limitGroup(context: StoreContext, { queue, group, limits }: GroupLimitsChange): void {
  configure(context, { queue, grouped: true })
  context.statements.run('limit-group/limit', { queue, group, limits: limits && JSON.stringify(limits) })
}
