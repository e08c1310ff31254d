/**
 * Random sequences of operations on every store, each answer compared with the model's.
 * A failure prints its seed and the shortest sequence found; `MILLPOND_SEED=…` runs that seed again.
 */

import { describe, test } from 'node:test'
import fc from 'fast-check'
import { stores } from '../conformance/stores.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { depth } from '../support/depth.ts'
import { Driver } from './driver.ts'
import { operation } from './operations.ts'

const seed = process.env.MILLPOND_SEED
const times = depth(0.4, 3)
// Shrinking stops here, so that a run with a time limit of its own still prints the seed.
const LONGEST_RUN = 200_000 * Math.max(times, 1)

for (const { name, skip, open, modelRuns } of stores) {
  const reason = modelRuns === 0 && 'it lacks too much, or differs in places (test/stores/spill-random.test.ts)'
  describe(`model: ${name}`, { skip: skip || reason }, () => {
    const numRuns = Math.ceil(modelRuns * times)
    test(`answers as the model does in ${numRuns} random sequences`, async () => {
      const sequence = fc.array(operation, { maxLength: 80, size: 'max' })
      const property = fc.asyncProperty(sequence, async (operations) => {
        const clock = { now: EPOCH }
        const { store, dispose } = await open({ clock: () => clock.now })
        try {
          await new Driver(store, clock).run(operations)
        } finally {
          await dispose()
        }
      })
      await fc.assert(property, {
        numRuns,
        interruptAfterTimeLimit: LONGEST_RUN,
        markInterruptAsFailure: true,
        ...(seed === undefined ? {} : { seed: Number(seed) }),
      })
    })
  })
}
