import { parseArgs } from 'node:util'
import { isVariant, VARIANTS, type VariantName } from './variants.ts'

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

const NAMES = Object.keys(VARIANTS).filter(isVariant)

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
      only: { type: 'string' },
      runs: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      patience: { type: 'string' },
      quick: { type: 'boolean', default: false },
      fsync: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const { quick, fsync } = values
  return {
    only: values.only === undefined ? NAMES : values.only.split(',').map(variantName),
    runs: whole('runs', values.runs ?? (quick ? '1' : '3')),
    seconds: whole('seconds', values.seconds ?? (quick ? '2' : '10')),
    connections: (values.connections ?? '5,64').split(',').map((text) => whole('connections', text)),
    patience: whole('patience', values.patience ?? (quick ? '5' : '30')) * 1000,
    fsync,
    json: values.json,
  }
}

function variantName(text: string): VariantName {
  if (!isVariant(text)) throw new Error(`--only takes ${NAMES.join(', ')}; got ${text}`)
  return text
}

function whole(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes whole numbers from 1; got ${text}`)
  return value
}
