import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../options.ts'

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
      ...COMMON,
      backlog: { type: 'string' },
    },
  })
  if (values.help) return 'help'
  const { quick } = values
  return {
    only: names('only', values.only, SECTIONS),
    runs: whole('runs', values.runs ?? (quick ? '2' : '5')),
    quick,
    backlog: whole('backlog', values.backlog ?? (quick ? '200000' : '10000000')),
    json: values.json,
  }
}
