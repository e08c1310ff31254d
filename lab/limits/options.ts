import { parseArgs } from 'node:util'
import { COMMON, names } from '../options.ts'
import { PARTS, type PartName } from './parts.ts'
import { STORES, type StoreName } from './stores.ts'

export interface Options {
  only: readonly PartName[]
  store: readonly StoreName[]
  quick: boolean
  fsync: boolean
  json: string | undefined
}

export const USAGE = `node lab/limits/main.ts [options]
  --only LIST    of ${PARTS.join(',')}; all unless given
  --store LIST   of ${STORES.join(',')}; all unless given
  --quick        a small part of the size and of the time
  --fsync        Redis with appendfsync always; unless given, without persistence
  --json FILE    the figures for programs`

export function options(argv: readonly string[]): Options | 'help' {
  const { runs: _, ...common } = COMMON
  const { values } = parseArgs({
    args: [...argv],
    options: { ...common, store: { type: 'string' }, fsync: { type: 'boolean', default: false } },
  })
  if (values.help) return 'help'
  const { quick, fsync, json } = values
  return { only: names('only', values.only, PARTS), store: names('store', values.store, STORES), quick, fsync, json }
}
