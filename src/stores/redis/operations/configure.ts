/** A queue's settings. */
import { isDeepStrictEqual } from 'node:util'
import type { Input } from '../../../store.ts'
import type { SettingsReport } from '../../../values/operations/requests.ts'
import {
  type QueueSettings,
  type SettingName,
  type SettingsChange,
  setsNothing,
} from '../../../values/settings/settings.ts'
import { DEFAULTS } from '../../defaults.ts'
import { givenFrom, givenTexts, type Settled, settle } from '../../given-settings.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { pack, rateList, textIn } from '../wire.ts'

const LIMITS = ['running', 'rate', 'grouped', 'groupRunning', 'groupRate'] as const

export async function configure(context: StoreContext, change: SettingsChange): Promise<SettingName[]> {
  const { notifier, settings: made } = context
  if (setsNothing(change)) return []
  const { queue, by, clear: _, ...values } = change
  const { apply, overridden } = await settled(context, change)
  if (by !== 'operator') made.set(queue, { ...made.get(queue), ...values, queue })
  if (apply.capacity !== undefined) notifier.local.ring('room', queue)
  if (apply.paused === false || LIMITS.some((name) => apply[name] !== undefined)) notifier.local.ring('work', queue)
  return overridden
}

/**
 * What comes into effect depends on what others have given. The script changes nothing where that is not what was thought here, and answers
 * what it is.
 */
async function settled(context: StoreContext, change: SettingsChange): Promise<Settled> {
  const { queue } = change
  let known: readonly [string, string] = ['', '']
  for (;;) {
    const settling = settle(givenFrom(known[0] || null, known[1] || null), change)
    const { code, operator } = givenTexts(settling.given)
    const head = [known.join('\n'), code ?? '', operator ?? '']
    const [others, ...more] = await callScript(context, 'configure', {
      ...{ queue, head, items: itemsOf(settling.apply), safe: true },
    })
    if (others === undefined) return settling
    known = [textIn(others), textIn(more[0])]
  }
}

/** As scripts take settings. */
function itemsOf({ queue: _, backoff, rate, groupRate, ...rest }: Partial<QueueSettings>): (string | Buffer)[] {
  const given = Object.entries({
    ...rest,
    rate: rate && rateList(rate),
    groupRate: groupRate && rateList(groupRate),
    backoff: backoff && [backoff.base, backoff.factor, backoff.max, backoff.jitter],
  })
  return given.flatMap(([name, value]) => (value === undefined ? [] : [name, pack(value)]))
}

export async function settings(context: StoreContext, { queue }: Input<'settings'>): Promise<SettingsReport | null> {
  const [code, operator, paused, grouped] = await callScript(context, 'settings', { queue })
  if (code === undefined) return null
  const given = givenFrom(textIn(code) || null, textIn(operator) || null)
  const values = { ...DEFAULTS, ...given.code, ...given.operator, paused: paused === 1, grouped: grouped === 1 }
  return { values, ...given }
}

export async function limitGroup(context: StoreContext, { queue, group, limits }: Input<'limitGroup'>): Promise<void> {
  const { notifier } = context
  const own = limits && [limits.running ?? false, limits.rate === null ? false : rateList(limits.rate), limits.weight]
  await callScript(context, 'limit-group', { queue, head: [group, own], safe: true })
  notifier.local.ring('work', queue)
}

/** The server knows of no settings of this queue: it was emptied, or came back with less. What was set here is set again. */
export function restoreSettings(context: StoreContext, queue: string): void {
  const made = context.settings.get(queue)
  if (made === undefined || isDefault(made)) return
  // Once. Where that fails, the next call that finds the settings missing sends them again.
  context.settings.delete(queue)
  configure(context, made).catch(() => context.settings.set(queue, { ...made, ...context.settings.get(queue) }))
}

/** Of a queue that was removed because nobody used it: it need not come back. */
const isDefault = ({ queue: _, ...made }: QueueSettings): boolean =>
  isDeepStrictEqual({ ...DEFAULTS, ...made }, DEFAULTS)
