import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../options.ts'
import { hasRabbitmq } from './rabbitmq.ts'
import { NAMES, type VariantName, variant } from './variants.ts'

export interface Options {
  only: readonly VariantName[]
  runs: number
  /** How long a long job takes, in ms. */
  long: number
  json: string | undefined
}

export const USAGE = `node lab/priorities/main.ts [options]
  --only LIST      of ${NAMES.join(',')}; all unless given, without RabbitMQ where it is not installed
  --runs N         of each variant in each scenario, on fresh servers; 1
  --long N         seconds that a long job takes; 20
  --quick          long jobs of 2 s
  --json FILE      the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({ args: [...argv], options: { ...COMMON, long: { type: 'string' } } })
  if (values.help) return 'help'
  return {
    only: names('only', values.only, NAMES).filter((name) => hasRabbitmq || variant(name).store !== 'rabbitmq'),
    runs: whole('runs', values.runs ?? '1'),
    long: whole('long', values.long ?? (values.quick ? '2' : '20')) * 1000,
    json: values.json,
  }
}
