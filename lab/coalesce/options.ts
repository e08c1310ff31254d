import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../options.ts'
import { NAMES, type VariantName } from './variants.ts'

export interface Options {
  only: readonly VariantName[]
  runs: number
  /** Of the load. */
  seconds: number
  connections: number
  json: string | undefined
}

export const USAGE = `node lab/coalesce/main.ts [options]
  --only LIST       of ${NAMES.join(',')}; all unless given
  --runs N          of each variant, on fresh servers; 3
  --seconds N       of load; 10
  --connections N   1000
  --quick           1 run of 3 s
  --json FILE       the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: { ...COMMON, seconds: { type: 'string' }, connections: { type: 'string' } },
  })
  if (values.help) return 'help'
  const { quick } = values
  return {
    only: names('only', values.only, NAMES),
    runs: whole('runs', values.runs ?? (quick ? '1' : '3')),
    seconds: whole('seconds', values.seconds ?? (quick ? '3' : '10')),
    connections: whole('connections', values.connections ?? '1000'),
    json: values.json,
  }
}
