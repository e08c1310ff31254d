/** Every lifecycle vector on every store. */

import { describe, test } from 'node:test'
import { replay } from './replay.ts'
import { stores } from './stores.ts'
import { EPOCH, loadVectors } from './vectors.ts'

const vectors = loadVectors()

for (const { name, skip, idsPerQueue, open } of stores) {
  describe(`lifecycle vectors: ${name}`, { skip }, () => {
    for (const vector of vectors) {
      test(vector.name, { skip: vector.needs === 'ids of all queues' ? (idsPerQueue ?? false) : false }, async () => {
        const clock = { now: EPOCH }
        const { store, dispose } = await open({ clock: () => clock.now })
        try {
          await replay(vector, store, clock)
        } finally {
          await dispose()
        }
      })
    }
  })
}
