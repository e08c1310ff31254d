/** The explorer as a test: what was found once, then a sample of everything for some seconds. `npm run interleave` runs more. */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { seeded } from '../faults/harness.ts'
import { depth } from '../support/depth.ts'
import type { Script } from './arena.ts'
import { casesOf, describeScript, PAIRS, TRIPLES } from './cases.ts'
import { CONFIGS } from './configs.ts'
import { Explorer } from './explorer.ts'
import { HISTORIES } from './histories.ts'
import { ARENAS } from './stores.ts'

const SEED = Number(process.env.MILLPOND_INTERLEAVE_SEED ?? randomInt(2 ** 31))
/** Of the sample, for each store. */
const SECONDS = depth(3, 60)
/** Most of each known case. A deep run takes all. */
const KNOWN_ORDERS = depth(30, Number.POSITIVE_INFINITY)
/** Of each case of the sample: more cases tell more than more orders. */
const ORDERS = 4

export interface Known {
  config: string
  history: string
  scripts: Script[]
}

const named = <T extends { name: string }>(list: readonly T[], name: string): T => {
  const found = list.find((each) => each.name === name)
  assert.ok(found !== undefined, name)
  return found
}

export function interleavings(store: string, known: readonly Known[]): void {
  const arena = ARENAS[store]
  if (arena === undefined) throw new Error(store)
  describe(`interleavings: ${store}`, { skip: arena.missing }, () => {
    let explorer: Explorer
    before(() => {
      explorer = new Explorer(store, arena.open)
    })
    after(() => explorer.close())

    for (const { config, history, scripts } of known) {
      test(`${config}; ${history}; ${scripts.map(describeScript).join(' ∥ ')}`, async () => {
        const given = { config: named(CONFIGS, config), history: named(HISTORIES, history) }
        await explorer.run(given, scripts, { most: KNOWN_ORDERS, random: seeded(SEED) })
        explorer.assertFree()
      })
    }

    test('a sample of all pairs and triples', async (t) => {
      const random = seeded(SEED)
      const until = performance.now() + SECONDS * 1000
      await explorer.explore(casesOf([...PAIRS, ...TRIPLES], random), { until, orders: ORDERS, random })
      t.diagnostic(`${explorer.report()}, seed ${SEED}`)
      explorer.assertFree()
    })
  })
}
