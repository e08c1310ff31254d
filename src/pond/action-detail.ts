/** What the log of actions says of a change: values of settings, and which jobs a bulk change was for. No payload is in it. */
import type { JobState } from '../values/jobs/records.ts'
import type { SettingName } from '../values/settings/settings.ts'
import { durationText } from '../values/time/duration.ts'
import type { FilterOptions } from './listing.ts'
import type { QueueSetting } from './queue-options.ts'

/** Characters. */
const MOST = 500
const TIMES: readonly SettingName[] = ['lease', 'timeout', 'keepDone', 'keepDead']

/** Such as `running 1 → 20`. undefined: all is as before. */
export function changeText(before: readonly QueueSetting[], after: readonly QueueSetting[]): string | undefined {
  const changes = after.flatMap(({ name, value }) => {
    const [from, to] = [before.find((one) => one.name === name)?.value, value].map((one) => valueText(name, one))
    return from === to ? [] : [`${name} ${from} → ${to}`]
  })
  return changes.length === 0 ? undefined : bounded(changes.join(', '))
}

function valueText(name: SettingName, value: unknown): string {
  if (value == null) return 'none'
  if (typeof value !== 'number') return JSON.stringify(value)
  if (!TIMES.includes(name) || value === 0) return value.toLocaleString('en-US')
  return durationText(value)
}

/**
 * Such as `state: dead, group: tenant-7, error: …`. Of texts that payloads and errors may have, only that there was one.
 * undefined: it was for all.
 */
export function searchText(search: FilterOptions & { state?: JobState | undefined }): string | undefined {
  const { state, group, key, errorCode, errorText, pushedFrom, pushedBefore, text, data } = search
  const time = (at: Date | number | undefined) => (at === undefined ? undefined : new Date(at).toISOString())
  const hidden = (value: unknown) => (value === undefined ? undefined : '…')
  const terms: [name: string, value: string | number | undefined][] = [
    ['state', state],
    ['group', group === '' ? 'none' : group],
    ['key', key],
    ['code', errorCode],
    ['error', hidden(errorText)],
    ['pushed from', time(pushedFrom)],
    ['pushed before', time(pushedBefore)],
    ['data', hidden(text ?? data)],
  ]
  const given = terms.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return given.length === 0 ? undefined : bounded(given.join(', '))
}

const bounded = (text: string): string => (text.length > MOST ? `${text.slice(0, MOST)}…` : text).toWellFormed()
