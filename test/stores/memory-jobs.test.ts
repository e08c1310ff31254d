/** The memory store's jobs by id, held against a plain map through every kind of order that ids may come in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Job } from '../../src/stores/memory/job.ts'
import { Jobs } from '../../src/stores/memory/jobs.ts'
import { newJob } from '../conformance/suite.ts'

const idOf = (n: number): string => `019b76da-a800-7000-8000-${n.toString(16).padStart(12, '0')}`
const jobOf = (n: number): Job => new Job(newJob({ id: idOf(n) }), n, 0, 0)

class Both {
  readonly jobs = new Jobs()
  readonly known = new Map<number, Job>()

  add(n: number): void {
    if (this.known.has(n)) return
    const job = jobOf(n)
    this.jobs.add(job)
    this.known.set(n, job)
  }

  remove(n: number): void {
    const job = this.known.get(n)
    if (job === undefined) return
    this.jobs.remove(job)
    this.known.delete(n)
  }

  check(numbers: Iterable<number>): void {
    for (const n of numbers) assert.equal(this.jobs.get(idOf(n)), this.known.get(n), `job ${n}`)
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

describe('jobs of the memory store', () => {
  test('rising ids over many shelves: each is found, and unknown ones are not', () => {
    const both = new Both()
    for (const n of upTo(3_000)) both.add(2 * n)
    both.check(upTo(6_100))
  })

  test('a job is found until it is removed, first come first gone', () => {
    const both = new Both()
    for (const n of upTo(3_000)) {
      both.add(n)
      both.remove(n - 700)
    }
    both.check(upTo(3_000))
  })

  test('the few left of a shelf are found after it was cleared, whenever it became full', () => {
    const both = new Both()
    for (const n of upTo(600)) {
      both.add(n)
      // Nearly empty already when it becomes full.
      if (n % 100 !== 0) both.remove(n)
    }
    for (const n of upTo(2_000)) both.add(600 + n)
    for (const n of upTo(2_000)) if (n % 50 !== 0) both.remove(600 + n)
    both.check(upTo(2_700))
    for (const n of [...both.known.keys()]) both.remove(n)
    both.check(upTo(2_700))
  })

  test('ids in any order, added and removed at random', () => {
    const step = fc.record({ add: fc.boolean(), n: fc.nat(3_000) })
    fc.assert(
      fc.property(fc.array(step, { minLength: 500, maxLength: 5_000 }), (steps) => {
        const both = new Both()
        for (const { add, n } of steps) {
          if (add) both.add(n)
          else both.remove(n)
        }
        both.check(upTo(3_001))
      }),
      { numRuns: 30 },
    )
  })
})
