import { parseArgs } from 'node:util'

export const SECTIONS = ['redis', 'postgres', 'groups', 'backlog', 'pinned'] as const
export type SectionName = (typeof SECTIONS)[number]

export interface Options {
  only: readonly SectionName[]
  /** Times that every measurement is made, each in a fresh process. */
  runs: number
  quick: boolean
  /** Jobs in the backlog that all are measured with, and in the larger one of ours in PostgreSQL. */
  backlog: number
  larger: number
  /** Of load, with an old transaction and without. */
  minutes: number
  /** Redis writes to the disk before it answers. */
  fsync: boolean
  json: string | undefined
}

export const USAGE = `npm start -- [options]
  --only LIST      of ${SECTIONS.join(',')}; all unless given
  --runs N         times that every measurement is made, each in a fresh process; 5, of the backlogs 3 at most, of pinned 1
  --quick          2 runs of a tenth of the jobs, backlogs of 100k and 300k, a quarter of a minute of load
  --backlog N      jobs in the larger backlog, ours in PostgreSQL alone; 10M. All are measured with a tenth of it
  --minutes N      of load while an old transaction is open; 5
  --fsync          Redis with appendfsync always; unless given, without persistence
  --json FILE      the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      only: { type: 'string' },
      runs: { type: 'string' },
      quick: { type: 'boolean', default: false },
      backlog: { type: 'string' },
      minutes: { type: 'string' },
      fsync: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const { quick, fsync } = values
  const larger = whole('backlog', values.backlog, quick ? 300_000 : 10_000_000)
  return {
    only: values.only === undefined ? SECTIONS : values.only.split(',').map(sectionName),
    runs: whole('runs', values.runs, quick ? 2 : 5),
    quick,
    backlog: quick && values.backlog === undefined ? 100_000 : Math.ceil(larger / 10),
    larger,
    minutes: positive('minutes', values.minutes, quick ? 0.25 : 5),
    fsync,
    json: values.json,
  }
}

function sectionName(text: string): SectionName {
  const name = SECTIONS.find((section) => section === text)
  if (name === undefined) throw new Error(`--only takes ${SECTIONS.join(', ')}; got ${text}`)
  return name
}

const SUFFIX: Record<string, number> = { k: 1e3, M: 1e6 }

/** `10M` and `500k` as well. */
function whole(name: string, text: string | undefined, fallback: number): number {
  const [, digits, suffix = ''] = /^(\d+)([kM]?)$/.exec(text ?? `${fallback}`) ?? []
  const value = Number(digits) * (SUFFIX[suffix] ?? 1)
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number from 1; got ${text}`)
  return value
}

function positive(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!(value > 0)) throw new Error(`--${name} takes a number above 0; got ${text}`)
  return value
}
