/** Rules of alerts, as they are given and as they are used. */

import { MillpondError } from '../values/errors/errors.ts'
import { checkOptions, isDuration, isInteger, type Rules } from '../values/options/options.ts'
import { checkQueueName } from '../values/settings/names.ts'
import { type Duration, kindOf, milliseconds, shown } from '../values/time/duration.ts'

/** What a rule looks at. Exactly one is given. */
export interface AlertCondition {
  /** 95 % of the jobs that started in the last 5 minutes had waited for no longer. */
  waitP95?: Duration | undefined
  /** How long the oldest waiting job has been due. */
  oldest?: Duration | undefined
  /** How many jobs wait. */
  depth?: number | undefined
  /** How many attempts failed in the last 5 minutes. */
  failures?: number | undefined
  /** How many dead jobs the store has. */
  dead?: number | undefined
  /** true: jobs wait, and no worker was heard of in the last minute. */
  noWorker?: true | undefined
}
export type AlertMetric = keyof AlertCondition

export interface AlertRule {
  /** For people; 1 to 100 characters. Every rule has another one. */
  name: string
  /** Unset: every queue, each by itself. */
  queue?: string | undefined
  /** The alert is for what is above this. */
  when: AlertCondition
  /** It fires once this has lasted for so long; 0 to 24 days, 1 minute unless set. */
  for?: Duration | undefined
  /** It resolves once this has been over for so long; 0 to 24 days, as `for` unless set. */
  resolveAfter?: Duration | undefined
  /** It is over at this value or below it, in the unit of `when`; the value in `when` unless set, and not above it. */
  resolveBelow?: Duration | undefined
}

/** With times in milliseconds. */
export interface CheckedRule {
  name: string
  /** undefined: every queue. */
  queue: string | undefined
  metric: AlertMetric
  above: number
  resolveBelow: number
  for: number
  resolveAfter: number
}

const MINUTE = 60_000
const count = isInteger(0, Number.MAX_SAFE_INTEGER)
const CONDITIONS: Rules<AlertCondition> & Record<AlertMetric, unknown> = {
  waitP95: isDuration(0),
  oldest: isDuration(0),
  depth: count,
  failures: count,
  dead: count,
  noWorker: (value) => value === true || 'true',
}
const RULES: Rules<AlertRule> = {
  name: (value) =>
    (typeof value === 'string' && value.length > 0 && value.length <= 100) || 'a text of 1 to 100 characters',
  queue: (value) => checkQueueName(value) !== '',
  when: (value) => (typeof value === 'object' && value !== null) || 'an object such as { oldest: "10m" }',
  for: isDuration(0),
  resolveAfter: isDuration(0),
  resolveBelow: (value, name) => typeof value === 'number' || isDuration(0)(value, name),
}

/** @throws InvalidOption, InvalidName */
export function checkRules(given: unknown): CheckedRule[] {
  if (!Array.isArray(given) || given.length === 0)
    throw refused(`rules are an array of at least one; got ${kindOf(given)}`)
  const rules = given.map(checkRule)
  const twice = rules.find(({ name }, index) => rules.findIndex((rule) => rule.name === name) !== index)
  if (twice !== undefined) throw refused(`two rules are named ${shown(twice.name)}; give each a name of its own`)
  return rules
}

function checkRule(given: AlertRule): CheckedRule {
  const rule = checkOptions(given, RULES, 'a rule of alerts', ['name', 'when'])
  const what = `rule ${shown(rule.name)}`
  const when = checkOptions(rule.when, CONDITIONS, `when of ${what}`)
  const entries = Object.entries(when).filter(([, value]) => value !== undefined)
  const [entry] = entries
  if (entry === undefined || entries.length > 1) {
    throw refused(`when of ${what} takes one of ${Object.keys(CONDITIONS).join(', ')}; got ${entries.length}`)
  }
  const metric = entry[0] as AlertMetric
  const amount = (value: Duration | true) => {
    if (metric === 'noWorker') return 0
    return metric === 'waitP95' || metric === 'oldest' ? milliseconds(value as Duration, what) : Number(value)
  }
  const above = amount(entry[1])
  const resolveBelow = rule.resolveBelow === undefined ? above : amount(rule.resolveBelow)
  if (!(resolveBelow >= 0 && resolveBelow <= above)) {
    throw refused(`resolveBelow of ${what} must be a value of ${metric} from 0 to the one in when`)
  }
  const lasting = rule.for === undefined ? MINUTE : milliseconds(rule.for, 'for')
  const resolveAfter = rule.resolveAfter === undefined ? lasting : milliseconds(rule.resolveAfter, 'resolveAfter')
  return { name: rule.name, queue: rule.queue, metric, above, resolveBelow, for: lasting, resolveAfter }
}

const refused = (message: string) => new MillpondError('InvalidOption', `alerts: ${message}`)
