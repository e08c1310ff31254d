import { parseArgs } from 'node:util'
import { COMMON, names, whole } from '../../options.ts'
import { NAMES, type VariantName } from './variants.ts'

export interface Options {
  only: readonly VariantName[]
  runs: number
  mails: number
  json: string | undefined
}

export const USAGE = `node lab/newsletter/rate/main.ts [options]
  --only LIST   of ${NAMES.join(',')}; all unless given
  --runs N      of each variant; 1
  --mails N     that wait when the senders begin; 3000
  --quick       600 mails
  --json FILE   the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({ args: [...argv], options: { ...COMMON, mails: { type: 'string' } } })
  if (values.help) return 'help'
  return {
    only: names('only', values.only, NAMES),
    runs: whole('runs', values.runs ?? '1'),
    mails: whole('mails', values.mails ?? (values.quick ? '600' : '3000')),
    json: values.json,
  }
}
