/** Every lifecycle vector on every store that has what the vector needs. */

import { describe, test } from 'node:test'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { isInThisRun, runsOnVariants } from '../support/variants.ts'
import { replay } from './replay.ts'
import { everyStore, plain } from './stores.ts'
import { EPOCH, loadVectors } from './vectors.ts'

const vectors = loadVectors()
/** On stores with a file or a server, one of so many: for runs whose matter is another. 1: all, also on those that have a sample. */
const EVERY = process.env.MILLPOND_TEST_VECTORS_EVERY ?? (runsOnVariants ? '1' : undefined)

// A usual run has a sample of the vectors on the variants.
const stores = runsOnVariants ? everyStore.filter(isInThisRun) : [...everyStore, plain]

for (const { name, skip, ownClock, differs, sample = 1, open } of stores) {
  const every = Number(EVERY ?? sample)
  describe(`lifecycle vectors: ${name}`, { skip }, () => {
    for (const vector of name === 'memory' ? vectors : vectors.filter((_, n) => n % every === 0)) {
      test(vector.name, async (t) => {
        const clock = { now: EPOCH }
        const { store, dispose } = await open({ clock: () => clock.now })
        try {
          const reason = [vector.name, ...(vector.needs ?? [])].map((name) => differs?.[name]).find(Boolean)
          if (reason !== undefined) return t.skip(reason)
          for (const need of vector.needs ?? []) {
            if (!store.capabilities[need]) return t.skip(`the store lacks ${need}`)
          }
          if (ownClock !== undefined && vector.needs?.includes('delays')) return t.skip(ownClock)
          await replay(vector, store, clock)
        } catch (error) {
          if (!isMillpondError(error, 'AcrossShards')) throw error
          t.skip(error.message)
        } finally {
          await dispose()
        }
      })
    }
  })
}
