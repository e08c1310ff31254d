import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../options.ts'
import { NAMES, type VariantName } from './variants.ts'

export interface Options {
  only: readonly VariantName[]
  counts: readonly number[]
  runs: number
  /** Of the load. */
  seconds: number
  connections: number
  /** Also a value of 600 MB. */
  large: boolean
  json: string | undefined
}

export const USAGE = `node lab/cache/main.ts [options]
  --only LIST       of ${NAMES.join(',')}; all unless given
  --items LIST      1,10,100,1000,10000,100000
  --full            1,000,000 as well, and a value of 600 MB
  --large           only the value of 600 MB
  --runs N          of each variant with each size, on an empty Redis; 3
  --seconds N       of load; 10
  --connections N   10
  --quick           1 run of 1 s with 1,100,1000,10000
  --json FILE       the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      ...COMMON,
      items: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      full: { type: 'boolean', default: false },
      large: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const { quick, full, large } = values
  const usual = quick ? '1,100,1000,10000' : `1,10,100,1000,10000,100000${full ? ',1000000' : ''}`
  return {
    only: names('only', values.only, NAMES),
    counts: large ? [] : (values.items ?? usual).split(',').map((text) => whole('items', text)),
    runs: whole('runs', values.runs ?? (quick ? '1' : '3')),
    seconds: whole('seconds', values.seconds ?? (quick ? '1' : '10')),
    connections: whole('connections', values.connections ?? '10'),
    large: large || full,
    json: values.json,
  }
}
