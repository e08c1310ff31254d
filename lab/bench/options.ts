import { parseArgs } from 'node:util'

export const SECTIONS = ['memory', 'sqlite', 'idle', 'http', 'backlog', 'prefetch'] as const
export type SectionName = (typeof SECTIONS)[number]

export interface Options {
  only: readonly SectionName[]
  /** Times that every measurement is made, each in a fresh process. */
  runs: number
  quick: boolean
  /** Jobs in the large backlog. */
  backlog: number
  json: string | undefined
}

export const USAGE = `npm run bench -- [options]
  --only LIST      of ${SECTIONS.join(',')}; all unless given
  --runs N         times that every measurement is made, each in a fresh process; 5
  --quick          2 runs, a fifth of the jobs, a backlog of 200,000
  --backlog N      jobs in the large backlog; 10000000
  --json FILE      the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      only: { type: 'string' },
      runs: { type: 'string' },
      quick: { type: 'boolean', default: false },
      backlog: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const { quick } = values
  return {
    only: values.only === undefined ? SECTIONS : values.only.split(',').map(sectionName),
    runs: whole('runs', values.runs, quick ? 2 : 5),
    quick,
    backlog: whole('backlog', values.backlog, quick ? 200_000 : 10_000_000),
    json: values.json,
  }
}

function sectionName(text: string): SectionName {
  const name = SECTIONS.find((section) => section === text)
  if (name === undefined) throw new Error(`--only takes ${SECTIONS.join(', ')}; got ${text}`)
  return name
}

function whole(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number from 1; got ${text}`)
  return value
}
