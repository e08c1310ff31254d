import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../options.ts'

export const PARTS = ['sqlite', 'memory', 'redis', 'postgres', 'groups', 'users', 'cache', 'coalesce'] as const
export type PartName = (typeof PARTS)[number]

export interface Options {
  only: readonly PartName[]
  runs: number
  quick: boolean
  json: string | undefined
}

export const USAGE = `npm run floors -- [options]
  --only LIST      of ${PARTS.join(',')}; all unless given
  --runs N         times that every figure is measured; 3
  --quick          1 run of a small part, to see that it works: nothing that it says about speed is true
  --json FILE      the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({ args: [...argv], options: COMMON })
  if (values.help) return 'help'
  const { quick, json } = values
  return {
    only: names('only', values.only, PARTS),
    runs: whole('runs', values.runs ?? (quick ? '1' : '3')),
    quick,
    json,
  }
}
