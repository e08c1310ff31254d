/** Slots that a worker keeps for urgent jobs. How it claims for them is in `test/unit/worker-claims.test.ts`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkOptions } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { atWork, gate, onEachStore, refused, withoutLimits } from './suite.ts'

onEachStore('lanes', {
  'an urgent job starts while long jobs hold every other slot, and they never hold the reserved ones': async ({
    open,
  }) => {
    const queue = (await open()).queue<string>('q')
    const ends = gate()
    const started: string[] = []
    await queue.pushMany(['a', 'b', 'c', 'd'])
    const worker = queue.work(
      (job) => {
        started.push(job.data)
        return ends.opened
      },
      { concurrency: 3, lanes: [{ minPriority: 7, reserve: 1 }] },
    )
    await atWork(worker, 2)
    await queue.push('urgent', { priority: 7 })
    await queue.push('almost', { priority: 6 })
    await atWork(worker, 3)
    assert.deepEqual(started, ['a', 'b', 'urgent'])
    assert.deepEqual(worker.load, { running: 3, buffered: 0, slots: 3 })
    ends.open()
    await until(() => started.length === 6)
  },

  'urgent jobs hold any slot': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    const ends = gate()
    await queue.pushMany([1, 2, 3, 4], { priority: 9 })
    const worker = queue.work(() => ends.opened, { concurrency: 3, lanes: [{ minPriority: 7, reserve: 2 }] })
    await atWork(worker, 3)
    ends.open()
    await until(async () => (await queue.stats()).counts.done === 4)
  },

  'however jobs come and go, low ones never hold more slots than they may': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    const running: number[] = []
    const below = (priority: number) => running.filter((each) => each < priority).length
    const most = { below4: 0, below8: 0, all: 0 }
    queue.work(
      async (job) => {
        running.push(job.priority)
        most.below4 = Math.max(most.below4, below(4))
        most.below8 = Math.max(most.below8, below(8))
        most.all = Math.max(most.all, running.length)
        for (let ticks = job.data % 5; ticks > 0; ticks--) await new Promise(setImmediate)
        running.splice(running.indexOf(job.priority), 1)
      },
      {
        concurrency: 6,
        lanes: [
          { minPriority: 4, reserve: 2 },
          { minPriority: 8, reserve: 1 },
        ],
      },
    )
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 30 }, (_, n) => queue.push(n, { priority: (round * 7 + n * (n % 3)) % 10 })),
      )
    }
    await until(async () => (await queue.stats()).counts.done === 600)
    // Whether a bound is reached depends on how fast the store gives jobs.
    assert.ok(most.below4 <= 3 && most.below8 <= 5 && most.all <= 6, JSON.stringify(most))
  },

  'bad lanes are refused': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    const lane = (minPriority: unknown, reserve: unknown) => ({ minPriority, reserve })
    const refusals: [unknown, RegExp][] = [
      [{ minPriority: 7, reserve: 2 }, /lanes must be an array/],
      [[7], /a lane takes an object/],
      [[lane(0, 1)], /minPriority must be a whole number from 1 to 9; got 0/],
      [[lane(10, 1)], /minPriority/],
      [[lane(7, 0)], /reserve must be a whole number from 1 to/],
      [[lane(7, 1.5)], /reserve/],
      [[{ minPriority: 7 }], /reserve is missing/],
      [[{ reserve: 1 }], /minPriority is missing/],
      [[{ ...lane(7, 1), max: 3 }], /unknown option "max"/],
      [[lane(7, 1), lane(7, 2)], /two of them have the minPriority 7/],
      [[lane(7, 10)], /reserve 10 of 10 slots/],
      [[lane(7, 6), lane(3, 5)], /reserve 11 of 10 slots/],
    ]
    for (const [lanes, message] of refusals) {
      await refused(() => queue.work(() => {}, { lanes } as WorkOptions), 'InvalidOption', message)
    }
    await queue.work(() => {}, { lanes: [lane(7, 9)] as WorkOptions['lanes'] & {} }).close()
  },
})

test('lanes on a store without limits are refused', () =>
  withoutLimits(async (pond) => {
    const work = () => pond.queue('q').work(() => {}, { lanes: [{ minPriority: 7, reserve: 1 }] })
    await refused(work, 'NotSupported', /lanes needs a store with the capability priorities, which memory lacks/)
  }))
