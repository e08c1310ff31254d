/**
 * The search box: qualifiers and words, as in `state:dead group:tenant-7 error:"connection reset" pushed:<1h`. Words
 * without a qualifier are looked for in the data.
 */
import type { JobState } from '../../values/jobs/records.ts'
import type { Search } from '../views.ts'

export const STATES: readonly JobState[] = [
  ...(['waiting', 'scheduled', 'blocked', 'running'] as const),
  ...(['dead', 'cancelled', 'done'] as const),
]

/** With an example of its value. */
export const QUALIFIERS: readonly { name: string; example: string; help: string }[] = [
  { name: 'state', example: 'dead', help: 'waiting, scheduled, blocked, running, done, dead or cancelled' },
  { name: 'group', example: 'tenant-7', help: 'jobs of one group' },
  { name: 'key', example: 'order-42', help: 'the job with this key' },
  { name: 'code', example: 'TimedOut', help: 'the code of the last error' },
  { name: 'error', example: '"connection reset"', help: 'text in the message of the last error' },
  { name: 'pushed', example: '<1h', help: 'younger (<1h) or older (>2d) than this, or from a day on (2026-03-04)' },
  { name: 'data', example: '"user 7"', help: 'text in the data' },
  { name: 'data.', example: 'user.id:7', help: 'a value at a place in the data' },
]

export type Parsed = { search: Search; fault?: undefined } | { search?: undefined; fault: string }

interface Term {
  name: string
  value: string
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** @param state where the text names none @param now milliseconds since 1970 */
export function parseSearch(text: string, state: JobState, now: number): Parsed {
  const search: Search = { state }
  const words: string[] = []
  for (const { name, value } of termsOf(text)) {
    if (value === '') return { fault: `${name}: has no value` }
    const fault = name === '' ? void words.push(value) : take(search, name, value, now)
    if (fault !== undefined) return { fault }
  }
  if (words.length > 0) {
    if (search.text !== undefined) return { fault: 'give words, or data: with a text, not both' }
    search.text = words.join(' ')
  }
  return { search }
}

/** @returns what is wrong; undefined: nothing */
function take(search: Search, name: string, value: string, now: number): string | undefined {
  if (name.startsWith('data.')) {
    const path = name.slice('data.'.length).split('.')
    if (search.data !== undefined) return 'give one place in the data'
    if (path.includes('')) return 'a place in the data is such as data.user.id:7'
    search.data = { path, value }
    return undefined
  }
  switch (name) {
    case 'state': {
      const state = STATES.find((one) => one === value)
      if (state === undefined) return `state is one of ${STATES.join(', ')}`
      search.state = state
      return undefined
    }
    case 'group':
      search.group = value === 'none' ? '' : value
      return undefined
    case 'key':
      search.key = value
      return undefined
    case 'code':
      search.errorCode = value
      return undefined
    case 'error':
      search.errorText = value
      return undefined
    case 'data':
      search.text = value
      return undefined
    case 'pushed':
      return pushed(search, value, now)
    default:
      return `there is no qualifier ${name}:; put a text with a colon in quotes`
  }
}

function pushed(search: Search, value: string, now: number): string | undefined {
  const [, sign = '', number = '', unit = ''] = /^([<>])(\d+(?:\.\d+)?)([smhdw])$/.exec(value) ?? []
  const at = now - Number(number) * (UNITS[unit] ?? 0)
  if (sign === '<') search.pushedFrom = Math.round(at)
  else if (sign === '>') search.pushedBefore = Math.round(at)
  else {
    const [from = '', before] = value.split('..')
    const times = [from, before].map((one) => (one === undefined || one === '' ? undefined : Date.parse(one)))
    if (times.some(Number.isNaN) || value === '..')
      return 'pushed is such as <1h, >2d, 2026-03-04 or 2026-03-04..2026-03-05'
    if (times[0] !== undefined) search.pushedFrom = times[0]
    if (times[1] !== undefined) search.pushedBefore = times[1]
  }
  return undefined
}

/** In the order of the text; a value in quotes may have spaces. */
function termsOf(text: string): Term[] {
  return [...text.matchAll(/(data\.[^\s:"]*|[a-z]+):(?=\s|$)|(?:(data\.[^\s:"]*|[a-z]+):)?(?:"([^"]*)"?|(\S+))/gi)].map(
    ([, bare, name = '', quoted, plain]) => {
      if (bare !== undefined) return { name: lower(bare), value: '' }
      return { name: lower(name), value: quoted ?? plain ?? '' }
    },
  )
}

/** In the names of a place in the data, the case counts. */
const lower = (name: string): string => name.replace(/^[a-z]+/i, (word) => word.toLowerCase())

export const quoted = (value: string): string =>
  /[\s":]/.test(value) || value === '' ? `"${value.replaceAll('"', '')}"` : value

/** The text with the qualifier set, or taken away. */
export function withTerm(text: string, name: string, value: string | undefined): string {
  const kept = text.replace(new RegExp(`(?:^|\\s)${name}:(?:"[^"]*"?|\\S*)`, 'gi'), '').trim()
  return value === undefined ? kept : `${name}:${quoted(value)}${kept === '' ? '' : ` ${kept}`}`
}

export interface Suggestion {
  /** The whole text with it. */
  text: string
  label: string
  help: string
}

/** What may come next, at the end of the text. @param known values of qualifiers */
export function suggestions(text: string, known: Readonly<Record<string, readonly string[]>>): Suggestion[] {
  const [before = '', last = ''] = [text.replace(/\S*$/, ''), /\S*$/.exec(text)?.[0] ?? '']
  const [, name, value = ''] = /^(data\.[^:"]*|[a-z]+):(.*)$/i.exec(last) ?? []
  if (name === undefined && /^data\./i.test(last)) {
    const places = (known.places ?? []).filter((one) => one.startsWith(last.slice('data.'.length)))
    return places.slice(0, 8).map((one) => ({ text: `${before}data.${one}:`, label: `data.${one}:`, help: '' }))
  }
  if (name === undefined) {
    const used = termsOf(before).map((term) => term.name)
    const open = QUALIFIERS.filter((one) => one.name.startsWith(last.toLowerCase()) && !used.includes(one.name))
    return open.map(({ name: one, example, help }) => {
      const isPlace = one.endsWith('.')
      return { text: `${before}${one}${isPlace ? '' : ':'}`, label: `${one}${isPlace ? '' : ':'}${example}`, help }
    })
  }
  const values =
    name === 'state' ? STATES : name === 'pushed' ? ['<5m', '<1h', '<1d', '>1h', '>1d', '>7d'] : (known[name] ?? [])
  const fitting = values.filter((one) => one.startsWith(value.replace(/^"/, '')) && one !== value).slice(0, 8)
  return fitting.map((one) => ({ text: `${before}${name}:${quoted(one)} `, label: `${name}:${quoted(one)}`, help: '' }))
}
