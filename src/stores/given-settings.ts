/**
 * Who has set what: contract/operations.md, "configure". Code and an operator each have their own value of a setting.
 * The operator's is in effect, else the code's, else the default. So a program that starts does not undo what an
 * operator has set.
 */
import { isDeepStrictEqual } from 'node:util'
import type { GivenSettings, QueueSettings, SettingName, SettingsChange } from '../values/settings/settings.ts'
import { DEFAULTS } from './defaults.ts'

type Values = Omit<QueueSettings, 'queue'>

export interface Settled {
  /** What comes into effect. */
  apply: Values
  given: GivenSettings
  /** What code gives and an operator's other value keeps out of effect. */
  overridden: SettingName[]
}

export const NOTHING_GIVEN: GivenSettings = { code: {}, operator: {} }

export function settle(before: GivenSettings, change: SettingsChange, defaults: Values = DEFAULTS): Settled {
  const { queue: _, by = 'code', clear = [], paused, grouped, ...values } = change
  const given = { code: { ...before.code }, operator: { ...before.operator } }
  const apply: Record<string, unknown> = {}
  const overridden: SettingName[] = []
  for (const name of clear) {
    if (!Object.hasOwn(given.operator, name)) continue
    delete given.operator[name]
    apply[name] = given.code[name] ?? defaults[name]
  }
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) continue
    const name = key as SettingName
    Object.assign(given[by], { [name]: value })
    const isOverridden = by === 'code' && Object.hasOwn(given.operator, name)
    if (!isOverridden) apply[name] = value
    else if (!isDeepStrictEqual(given.operator[name], value)) overridden.push(name)
  }
  // These two belong neither to code nor to the operator: either may pause a queue, and either may resume it.
  if (paused !== undefined) apply.paused = paused
  if (grouped !== undefined) apply.grouped = grouped
  return { apply: apply as Values, given, overridden: overridden.sort() }
}

/** As two texts, each null where there is nothing. */
export const givenTexts = ({ code, operator }: GivenSettings): { code: string | null; operator: string | null } => ({
  code: textOf(code),
  operator: textOf(operator),
})

const textOf = (side: object): string | null => (Object.keys(side).length === 0 ? null : JSON.stringify(side))

export function givenFrom(code: string | null, operator: string | null): GivenSettings {
  return { code: code === null ? {} : JSON.parse(code), operator: operator === null ? {} : JSON.parse(operator) }
}
