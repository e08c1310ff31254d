/** Command lines: a table of flags gives a program its usage, and its options their types. */
import { parseArgs } from 'node:util'

export interface Flag<Value> {
  /** The word behind the name in the usage; a switch has none. */
  takes?: string
  about: string
  /** The value if the flag is not given: usually, and with `--quick`. */
  usual: string
  quick: string
  /** @throws an error whose message continues the flag's name, such as "takes a whole number; got x" */
  read(text: string): Value
}
export type Flags = Readonly<Record<string, Flag<unknown>>>
export type Options<Table extends Flags> = {
  [Name in keyof Table]: Table[Name] extends Flag<infer Value> ? Value : never
} & { quick: boolean; json: string | undefined }

const SUFFIX: Record<string, number> = { k: 1e3, M: 1e6 }

function numberOf(text: string): number {
  const [, digits, suffix = ''] = /^([\d.]+)([kM]?)$/.exec(text) ?? []
  const value = Number(digits) * (SUFFIX[suffix] ?? 1)
  if (!(value > 0)) throw new Error(`takes a number above 0, such as 20, 500k or 10M; got ${text}`)
  return value
}

function wholeOf(text: string): number {
  const value = numberOf(text)
  if (!Number.isInteger(value)) throw new Error(`takes a whole number; got ${text}`)
  return value
}

export const positive = (about: string, usual: string, quick = usual): Flag<number> => {
  return { takes: 'N', about, usual, quick, read: numberOf }
}
export const whole = (about: string, usual: string, quick = usual): Flag<number> => {
  return { takes: 'N', about, usual, quick, read: wholeOf }
}
export const wholes = (about: string, usual: string, quick = usual): Flag<readonly number[]> => {
  return { takes: 'LIST', about, usual, quick, read: (text) => text.split(',').map(wholeOf) }
}
export const text = (takes: string, about: string): Flag<string> => {
  return { takes, about, usual: '', quick: '', read: (given) => given }
}
export const on = (about: string): Flag<boolean> => ({ about, usual: '', quick: '', read: (text) => text !== '' })

/** Some of the names, all unless given. */
export function some<Name extends string>(names: readonly Name[]): Flag<readonly Name[]> {
  const usual = names.join(',')
  return {
    takes: 'LIST',
    about: 'which, in this order',
    usual,
    quick: usual,
    read: (text) =>
      text.split(',').map((each) => {
        const name = names.find((known) => known === each)
        if (name === undefined) throw new Error(`takes some of ${usual}; got ${each}`)
        return name
      }),
  }
}

function usageOf(program: string, flags: Flags): string {
  const lines = Object.entries(flags).map(([name, { takes = '', about, usual, quick }]) => {
    const values = [usual, ...(quick === usual ? [] : [`quick: ${quick}`])].filter((value) => value !== '')
    return [`--${name} ${takes}`, `${about}${values.length > 0 ? `; ${values.join(', ')}` : ''}`]
  })
  lines.push(['--quick', 'small, to see that it works'], ['--json FILE', 'the figures for programs'])
  const width = Math.max(...lines.map(([name = '']) => name.length))
  return [`${program} [options]`, ...lines.map(([name = '', text]) => `  ${name.padEnd(width)}  ${text}`)].join('\n')
}

/** Ends the process for `--help`, and for arguments that make no sense. */
export function optionsFrom<Table extends Flags>(program: string, flags: Table, args: string[]): Options<Table> {
  const usage = usageOf(program, flags)
  try {
    const kinds = Object.entries(flags).map(([name, { takes }]) => {
      return [name, { type: takes === undefined ? 'boolean' : 'string' }] as const
    })
    const common = {
      quick: { type: 'boolean' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    } as const
    const values: Record<string, string | boolean | undefined> = parseArgs({
      args,
      options: { ...Object.fromEntries(kinds), ...common },
    }).values
    if (values.help === true) {
      console.log(usage)
      process.exit(0)
    }
    const quick = values.quick === true
    const read = Object.entries(flags).map(([name, flag]) => {
      try {
        return [name, flag.read(String(values[name] ?? (quick ? flag.quick : flag.usual)))]
      } catch (error) {
        throw new Error(`--${name} ${error instanceof Error ? error.message : error}`)
      }
    })
    // The one cast: each value was read by the flag of its name.
    return { ...Object.fromEntries(read), quick, json: values.json } as Options<Table>
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${usage}`)
    process.exit(2)
  }
}
