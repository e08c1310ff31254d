import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../options.ts'
import { NAMES, type VariantName } from './variants.ts'

export interface Options {
  only: readonly VariantName[]
  runs: number
  /** Of the load. */
  seconds: number
  connections: readonly number[]
  /** How long to wait for the rows after the last request, in ms. */
  patience: number
  fsync: boolean
  json: string | undefined
}

export const USAGE = `node lab/users/main.ts [options]
  --only LIST         of ${NAMES.join(',')}; all unless given
  --runs N            of each variant at each number of connections, on fresh servers; 3
  --seconds N         of load; 10
  --connections LIST  5,64
  --patience N        seconds to wait for the rows after the last request; 30
  --quick             1 run of 2 s, 5 s of patience
  --fsync             Redis with appendfsync always; unless given, without persistence
  --json FILE         the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      ...COMMON,
      seconds: { type: 'string' },
      connections: { type: 'string' },
      patience: { type: 'string' },
      fsync: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const { quick, fsync } = values
  return {
    only: names('only', values.only, NAMES),
    runs: whole('runs', values.runs ?? (quick ? '1' : '3')),
    seconds: whole('seconds', values.seconds ?? (quick ? '2' : '10')),
    connections: (values.connections ?? '5,64').split(',').map((text) => whole('connections', text)),
    patience: whole('patience', values.patience ?? (quick ? '5' : '30')) * 1000,
    fsync,
    json: values.json,
  }
}
