/** Settings of queues as options of the command line: their names, how they are read and shown. */

import { type OverrideOptions, SETTING_NAMES } from '../pond/queue-options.ts'
import { didYouMean } from '../values/options/did-you-mean.ts'
import { defined } from '../values/options/options.ts'
import type { BackoffPolicy } from '../values/settings/backoff.ts'
import type { Rate } from '../values/settings/limits.ts'
import { type RateOption, rateOf } from '../values/settings/rate.ts'
import type { SettingName } from '../values/settings/settings.ts'
import { durationText } from '../values/time/duration.ts'
import { type Arguments, orUsageError } from './arguments.ts'
import { grouped } from './figures.ts'
import { UsageError } from './usage-error.ts'

export const SETTINGS = {
  running: { value: 'N', help: 'jobs that run at once, over all workers; or none' },
  rate: { value: 'RATE', help: 'starts, such as 100/s or 5/10s; or none' },
  'group-running': { value: 'N', help: 'the same for each group; or none' },
  'group-rate': { value: 'RATE', help: 'the same for each group; or none' },
  capacity: { value: 'N', help: 'blocked, scheduled and waiting jobs; or none' },
  attempts: { value: 'N', help: 'how often a job is tried' },
  lease: { value: 'TIME', help: 'a worker that is silent for longer loses the job' },
  timeout: { value: 'TIME', help: 'how long an attempt may run; or none' },
  'keep-done': { value: 'TIME', help: 'how long done jobs stay' },
  'keep-dead': { value: 'TIME', help: 'how long dead and cancelled jobs stay' },
} as const
type Option = keyof typeof SETTINGS

/** Unset: not given; null: `none`. @throws UsageError */
const orNone = <T>(args: Arguments<Option>, option: Option, read: () => T | undefined): T | null | undefined =>
  args.text(option) === 'none' ? null : read()

const MOST = Number.MAX_SAFE_INTEGER

export const runningOf = (args: Arguments<Option>, option: 'running' | 'group-running' = 'running') =>
  orNone(args, option, () => args.whole(option, 1, 2 ** 31 - 1))

export const rateIn = (args: Arguments<Option>, option: 'rate' | 'group-rate' = 'rate') =>
  orNone(args, option, () => {
    const text = args.text(option)
    // The library checks its form.
    return text === undefined ? undefined : orUsageError('', () => rateOf(text as RateOption, `--${option}`))
  })

/** What is given, as `queue.override` takes it. @throws UsageError */
export function overridesOf(args: Arguments<Option>): OverrideOptions {
  const retry = defined({ attempts: args.whole('attempts', 1, 1_000_000) })
  const keep = defined({ done: args.duration('keep-done'), dead: args.duration('keep-dead') })
  const group = defined({ running: runningOf(args, 'group-running'), rate: rateIn(args, 'group-rate') })
  const limits = defined({
    running: runningOf(args),
    rate: rateIn(args),
    group: Object.keys(group).length > 0 ? group : undefined,
  })
  const orUnset = <T extends object>(value: T) => (Object.keys(value).length > 0 ? value : undefined)
  return defined({
    capacity: orNone(args, 'capacity', () => args.whole('capacity', 1, MOST)),
    lease: args.time('lease', 50),
    timeout: orNone(args, 'timeout', () => args.time('timeout', 1)),
    retry: orUnset(retry),
    keep: orUnset(keep),
    limits: orUnset(limits),
  })
}

/** `groupRunning` as `group-running`. */
export const optionName = (name: SettingName): string => name.replaceAll(/[A-Z]/g, (big) => `-${big.toLowerCase()}`)

/** Names of settings, as options have them. undefined: all. @throws UsageError */
export function settingNames(given: readonly string[]): SettingName[] | undefined {
  if (given.includes('all')) return undefined
  return given.map((text) => {
    const found = SETTING_NAMES.find((name) => text === name || text === optionName(name))
    if (found !== undefined) return found
    const known = SETTING_NAMES.map(optionName)
    throw new UsageError(`--clear takes all, ${known.join(', ')}${didYouMean(text, known)}`)
  })
}

const isRate = (value: unknown): value is Rate => typeof value === 'object' && value !== null && 'count' in value

export function rateText({ count, per, burst }: Rate): string {
  const time = durationText(per)
  return `${count}/${/^1[smhd]$/.test(time) ? time.slice(1) : time}${burst === null ? '' : `, burst ${burst}`}`
}

const TIMES: readonly SettingName[] = ['keepDone', 'keepDead', 'lease', 'timeout']

/** The value of a setting for people. */
export function settingText(name: SettingName, value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (isRate(value)) return rateText(value)
  if (isBackoff(value)) {
    const { base, factor, max, jitter } = value
    return `${durationText(base)}, times ${factor}, up to ${durationText(max)}, jitter ${jitter}`
  }
  if (typeof value !== 'number') return String(value)
  return TIMES.includes(name) ? durationText(value) : grouped(value)
}

const isBackoff = (value: unknown): value is BackoffPolicy =>
  typeof value === 'object' && value !== null && 'factor' in value
