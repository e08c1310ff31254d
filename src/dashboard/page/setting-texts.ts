/** Settings as people read and write them. */
import type { SettingName } from '../../values/settings/settings.ts'
import { count, exact } from './format.ts'

interface SettingText {
  label: string
  help: string
  shown: (value: unknown) => string
  /** As `queue.override` takes it. @throws Error with what is wrong, in words */
  override: (text: string) => object
}

export const NONE = 'none'

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const time = (value: unknown): string => (typeof value === 'number' ? exact(value) : NONE)
const number = (value: unknown): string => (typeof value === 'number' ? count(value) : NONE)

export function rateText(value: unknown): string {
  if (!isObject(value)) return NONE
  const per = exact(Number(value.per))
  const burst = value.burst == null ? '' : ` burst ${value.burst}`
  return `${value.count}/${per.startsWith('1') && /^1[a-z]+$/.test(per) ? per.slice(1) : per}${burst}`
}

const orNull = (text: string): string | null => (text === NONE || text === '' ? null : text)

function whole(text: string): number | null {
  const plain = text.replaceAll(/[,_ ]/g, '')
  if (plain === NONE || plain === '') return null
  if (!/^\d{1,15}$/.test(plain)) throw new Error(`a whole number, or ${NONE}`)
  return Number(plain)
}

export function rateOf(text: string): string | object | null {
  const [, rate = '', burst] = /^(\S+?)(?: burst (\d+))?$/.exec(text) ?? []
  if (text === NONE || text === '') return null
  if (burst === undefined) return text
  const [, count, per = ''] = /^(\d+)\/(.+)$/.exec(rate) ?? []
  return { count: Number(count), per: /^\d/.test(per) ? per : `1${per}`, burst: Number(burst) }
}

function backoffText(value: unknown): string {
  if (!isObject(value)) return NONE
  const { base, factor, max, jitter } = value
  return `${exact(Number(base))} × ${factor}, at most ${exact(Number(max))}, jitter ${jitter}`
}

function backoffOf(text: string): object {
  const [, base, factor, max, jitter] = /^(\S+) *[×x*] *([\d.]+), *at most (\S+), *jitter ([\d.]+)$/.exec(text) ?? []
  if (base === undefined) throw new Error('such as 1s × 2, at most 1h, jitter 0.5')
  return { type: 'exponential', base, factor: Number(factor), max, jitter: Number(jitter) }
}

export const SETTINGS: Readonly<Record<SettingName, SettingText>> = {
  running: {
    ...{ label: 'Running at once', help: 'most jobs that run at once, over all workers', shown: number },
    override: (text) => ({ limits: { running: whole(text) } }),
  },
  rate: {
    ...{ label: 'Rate of starts', help: 'such as 100/s, 5/10s or 100/s burst 20', shown: rateText },
    override: (text) => ({ limits: { rate: rateOf(text) } }),
  },
  groupRunning: {
    ...{ label: 'Running at once, each group', help: 'most jobs of each group that run at once', shown: number },
    override: (text) => ({ limits: { group: { running: whole(text) } } }),
  },
  groupRate: {
    ...{ label: 'Rate of starts, each group', help: 'such as 10/s', shown: rateText },
    override: (text) => ({ limits: { group: { rate: rateOf(text) } } }),
  },
  capacity: {
    ...{ label: 'Capacity', help: 'most jobs that wait, are scheduled or blocked', shown: number },
    override: (text) => ({ capacity: whole(text) }),
  },
  attempts: {
    ...{ label: 'Attempts', help: 'how often a job is tried, the first one included', shown: number },
    override: (text) => ({ retry: { attempts: whole(text) ?? undefined } }),
  },
  backoff: {
    ...{ label: 'Delay between attempts', help: 'base × factor, at most, jitter', shown: backoffText },
    override: (text) => ({ retry: { backoff: backoffOf(text) } }),
  },
  lease: {
    ...{ label: 'Lease', help: 'a worker that is silent for longer loses the job; such as 30s', shown: time },
    override: (text) => ({ lease: text }),
  },
  timeout: {
    ...{ label: 'Time limit', help: 'of one attempt, such as 5m', shown: time },
    override: (text) => ({ timeout: orNull(text) }),
  },
  keepDone: {
    ...{ label: 'Keep done jobs', help: 'such as 1h; 0: not at all', shown: time },
    override: (text) => ({ keep: { done: text === '0' ? 0 : text } }),
  },
  keepDead: {
    ...{ label: 'Keep dead jobs', help: 'and cancelled ones, such as 7d', shown: time },
    override: (text) => ({ keep: { dead: text === '0' ? 0 : text } }),
  },
}

export const SETTING_ORDER = Object.keys(SETTINGS) as SettingName[]
