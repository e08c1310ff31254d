/**
 * `npm run interleave -- [--seconds=600] [--seed=1] [--pairs=claim+complete,extend+complete+sweep] [--stores=postgres,sqlite,redis,memory] [--orders=30] [--strangers]`:
 * the explorer for that long per store. It ends with 1 if it has found anything. `--strangers`: one or two operations beside
 * an application's open transaction, on PostgreSQL.
 */

import { parseArgs } from 'node:util'
import { seeded } from '../faults/harness.ts'
import { casesOf, PAIRS, SINGLES, TRIPLES } from './cases.ts'
import { Explorer } from './explorer.ts'
import { KINDS, type Kind } from './operations.ts'
import { ARENAS } from './stores.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    orders: { type: 'string', default: '30' },
    pairs: { type: 'string' },
    strangers: { type: 'boolean', default: false },
    stores: { type: 'string', default: Object.keys(ARENAS).join(',') },
  },
})

function kindOf(word: string): Kind {
  const kind = KINDS.find((known) => known === word)
  if (kind === undefined) throw new Error(`${word} is none of ${KINDS.join(', ')}`)
  return kind
}

const sets =
  values.pairs?.split(',').map((set) => set.split('+').map(kindOf)) ??
  (values.strangers ? [...SINGLES, ...SINGLES, ...SINGLES, ...PAIRS] : [...PAIRS, ...TRIPLES])
let found = 0
for (const name of values.stores.split(',')) {
  const arena = ARENAS[name]
  if (arena === undefined) throw new Error(`${name} is none of ${Object.keys(ARENAS).join(', ')}`)
  if (arena.missing !== false) {
    console.log(`${name}: left out: ${arena.missing}`)
    continue
  }
  const explorer = new Explorer(name, arena.open)
  const random = seeded(Number(values.seed))
  const until = performance.now() + Number(values.seconds) * 1000
  await explorer.explore(casesOf(sets, random), {
    ...{ until, orders: Number(values.orders), random, strangers: values.strangers },
  })
  console.log(explorer.report())
  found += explorer.findings.size
  await explorer.close()
}
process.exit(found > 0 ? 1 : 0)
