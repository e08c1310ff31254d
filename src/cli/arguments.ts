/** The arguments of a verb, read by the options that it declares. No message shows a value that may hold a secret. */
import { parseArgs } from 'node:util'
import { safeText } from '../values/errors/safe-error.ts'
import { didYouMean } from '../values/options/did-you-mean.ts'
import { isError } from '../values/runtime/realms.ts'
import { checkQueueName } from '../values/settings/names.ts'
import { LONGEST_TIMER, milliseconds, shown } from '../values/time/duration.ts'
import { UsageError } from './usage-error.ts'

export interface Option {
  /** How the help names the value, such as `URL`. Unset: a flag. */
  value?: string
  /** It may be given several times. */
  multiple?: true
  /** For the help. */
  help: string
}

/** Of verbs that open one store. */
export const STORE = {
  store: { value: 'URL', help: 'sqlite:jobs.db, redis://…, postgres://…, amqp://…; or MILLPOND_STORE' },
} as const
export const STORE_MISSING = '--store is missing: give --store sqlite:jobs.db, or set MILLPOND_STORE'
/** Of verbs that print something. */
export const JSON_LINES = { json: { help: 'lines of JSON, for programs' } } as const

export type Environment = Readonly<Record<string, string | undefined>>

interface Declared {
  operands?: readonly string[]
  options: Readonly<Record<string, Option>>
}

/** Each read throws UsageError if the value is a wrong one. */
export class Arguments<Name extends string = string> {
  readonly env: Environment
  readonly help: boolean
  readonly #values: Readonly<Record<string, unknown>>
  readonly #operands: readonly string[]

  /** @throws UsageError */
  constructor(args: readonly string[], declared: Declared, env: Environment) {
    const { values, positionals } = parsed(args, declared)
    this.env = env
    this.help = values.help === true
    this.#values = values
    this.#operands = positionals
    if (!this.help) checkOperands(positionals, declared.operands ?? [])
  }

  /** @param index of the verb's `operands` */
  operand(index: number): string | undefined {
    return this.#operands[index]
  }

  /** Of an operand that may be given several times, which is the last one. */
  operandsFrom(index: number): readonly string[] {
    return this.#operands.slice(index)
  }

  flag(option: Name): boolean {
    return this.#values[option] === true
  }

  text(option: Name): string | undefined {
    const value = this.#values[option]
    return typeof value === 'string' ? value : undefined
  }

  /** Of an option that may be given several times. */
  texts(option: Name): string[] {
    const value = this.#values[option]
    return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
  }

  whole(option: Name, least: number, most: number): number | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw new UsageError(`--${option} is a whole number from ${least} to ${most}, not ${shown(text)}`)
  }

  /** Milliseconds. */
  time(option: Name, least: number): number | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    const given = /^\d+$/.test(text) ? Number(text) : text
    return orUsageError('', () => milliseconds(given, `--${option}`, least, LONGEST_TIMER))
  }

  /** Milliseconds, up to a century. */
  duration(option: Name): number | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    return orUsageError('', () => milliseconds(/^\d+$/.test(text) ? Number(text) : text, `--${option}`))
  }

  /** A time of the calendar. */
  date(option: Name): Date | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    const date = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : new Date(Number.NaN)
    if (!Number.isNaN(date.getTime())) return date
    throw new UsageError(`--${option} is a time such as 2026-03-01T04:00Z; got ${shown(text)}`)
  }

  /** A moment: a time of the calendar, or how long ago it was. @param now milliseconds since 1970 */
  moment(option: Name, now: number = Date.now()): Date | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    if (/^\d+(\.\d+)?[a-z]+$/.test(text)) {
      return new Date(now - orUsageError('', () => milliseconds(text, `--${option}`)))
    }
    const date = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : new Date(Number.NaN)
    if (!Number.isNaN(date.getTime())) return date
    const forms = '2026-03-01T04:00Z, or a time before now such as 90m'
    throw new UsageError(`--${option} is a moment such as ${forms}; got ${shown(text)}`)
  }

  /** One of some words. */
  choice<Word extends string>(option: Name, words: readonly Word[]): Word | undefined {
    const text = this.text(option)
    if (text === undefined) return undefined
    const found = words.find((word) => word === text)
    if (found !== undefined) return found
    throw new UsageError(`--${option} is one of ${words.join(', ')}; got ${shown(text)}${didYouMean(text, words)}`)
  }

  /** Names of queues. */
  queues(option: Name): string[] {
    return this.texts(option).map((name) => orUsageError(`--${option}: `, () => checkQueueName(name)))
  }

  /** The URL of `--store`, or else of the environment. */
  store(this: Arguments<'store'>): string {
    const store = this.text('store') ?? this.env.MILLPOND_STORE
    if (store === undefined || store === '') throw new UsageError(STORE_MISSING)
    return store
  }
}

/** Makes a wrong option of the library one of the command line. */
export function orUsageError<T>(where: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw new UsageError(`${where}${safeText(error)}`)
  }
}

function parsed(args: readonly string[], { options: declared }: Declared) {
  const options = Object.entries(declared).map(([name, { value, multiple = false }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string', multiple }] as const
  })
  try {
    return parseArgs({
      args: [...args],
      options: { ...Object.fromEntries(options), help: { type: 'boolean', short: 'h' } },
      strict: true,
      allowPositionals: true,
    })
  } catch (error) {
    throw new UsageError(parseFault(error, Object.keys(declared)))
  }
}

/** Node repeats an argument that it does not understand, which may be a store's URL or a token. */
function parseFault(error: unknown, known: readonly string[]): string {
  const code = isError(error) && 'code' in error ? error.code : undefined
  if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') return valueFault(safeText(error))
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return safeText(error)
  const [option] = /--?[a-z-]{1,30}(?=')/.exec(safeText(error)) ?? []
  if (option === undefined) return 'there is an option that is not known'
  return `there is no option ${option}${didYouMean(
    option,
    known.map((name) => `--${name}`),
  )}`
}

/** Of an option that has no value, or one where it takes none. */
function valueFault(text: string): string {
  const option = /--[a-z-]{1,30}/.exec(text)?.[0] ?? 'an option'
  if (text.includes('does not take an argument')) return `${option} takes no value`
  return `${option} needs a value; one that begins with a dash is written ${option}=VALUE`
}

function tooMany(given: number, names: readonly string[]): string {
  if (names.length === 0) return `there are arguments that belong to no option: ${given}. Options begin with --`
  return `too many arguments: ${given} instead of ${names.length} (${names.join(' ')}). Others begin with --`
}

function checkOperands(given: readonly string[], names: readonly string[]): void {
  const missing = names.find((name, index) => given[index] === undefined && !name.startsWith('['))
  if (missing !== undefined) throw new UsageError(`${missing} is missing`)
  const isOpen = names.at(-1)?.includes('…') === true
  if (given.length > names.length && !isOpen) throw new UsageError(tooMany(given.length, names))
}
