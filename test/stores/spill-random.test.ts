/**
 * Random sequences of operations on a memory store that spills and on one that has room for all: each gives the same jobs
 * in the same order, and knows as many. Left out is what takes a job to a place between others: it may be behind them if
 * they are in memory.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/memory/index.ts'
import type { ClaimedJob, Hold } from '../../src/values/jobs/records.ts'
import { newJob } from '../support/jobs.ts'
import { openSpilling } from '../support/spilling.ts'

const RUNS = 300
const seed = process.env.MILLPOND_SEED
const id = fc.integer({ min: 0, max: 40 }).map((number) => `019b76da-a800-7000-8000-0000000000${number + 10}`)
const queue = fc.constantFrom('q', 'q', 'p')
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('push' as const),
      jobs: fc.uniqueArray(
        fc.record({
          id,
          priority: fc.constantFrom(0, 4, 4, 4, 9),
          key: fc.constantFrom(null, null, null, 'a', 'b'),
          fresh: fc.boolean(),
        }),
        { minLength: 1, maxLength: 6, selector: (job) => job.id },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('claim' as const),
      queue,
      limit: fc.integer({ min: 1, max: 6 }),
      minPriority: fc.constantFrom(0, 0, 4, 9),
    }),
  },
  fc.record({ op: fc.constantFrom('complete' as const, 'release' as const, 'fail' as const) }),
  fc.record({
    op: fc.constantFrom('cancel' as const, 'remove' as const),
    ids: fc.array(id, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ op: fc.constant('update' as const), id }),
  fc.record({ op: fc.constant('look' as const) }),
)
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

class Run {
  readonly #store: Store
  /** Claims that were not ended yet, of each queue. */
  #held: { queue: string; holds: Hold[] }[] = []
  readonly #pushed = new Set<string>()

  constructor(store: Store) {
    this.#store = store
  }

  /** @returns what must be the same in both stores */
  async do(operation: Operation): Promise<unknown> {
    const { operations } = this.#store
    switch (operation.op) {
      case 'push': {
        const jobs = operation.jobs.map((job) => {
          const fresh = job.fresh && !this.#pushed.has(job.id)
          this.#pushed.add(job.id)
          return newJob({ ...job, fresh, queue: job.id.endsWith('5') ? 'p' : 'q' })
        })
        return operations.push({ jobs })
      }
      case 'claim': {
        const { queue, limit, minPriority } = operation
        const jobs: ClaimedJob[] = []
        // On a busy machine, a claim may give up waiting for the other store. It says so.
        for (let again = true; again && jobs.length < limit; ) {
          const left = limit - jobs.length
          const claimed = await operations.claim({ queue, limit: left, minPriority, worker: 'w', lease: 60_000 })
          jobs.push(...claimed.jobs)
          again = claimed.retryAfter !== null
        }
        this.#held.push({ queue, holds: jobs })
        return jobs.map(({ id, priority, attempt }) => ({ id, priority, attempt }))
      }
      case 'complete':
      case 'release':
      case 'fail':
        return this.#end(operation.op)
      case 'cancel':
        return operations.cancel({ ids: operation.ids })
      case 'remove':
        return operations.remove({ ids: operation.ids })
      case 'update': {
        return operations.update({ items: [{ id: operation.id, data: { encoding: 'json', body: '1' } }] })
      }
      case 'look':
        return this.#look()
    }
  }

  async #end(op: 'complete' | 'release' | 'fail'): Promise<unknown> {
    const [first, ...rest] = this.#held
    if (first === undefined) return undefined
    this.#held = rest
    const { queue, holds } = first
    const { complete, release, fail } = this.#store.operations
    if (op === 'complete') return complete({ queue, items: holds.map((hold) => ({ ...hold, result: null })) })
    if (op === 'release') return release({ queue, items: holds })
    const error = { code: 'HandlerFailed', name: 'Error', message: 'no' }
    return fail({ queue, items: holds.map((hold) => ({ ...hold, error, delay: null })) })
  }

  async #look(): Promise<unknown> {
    const { stats, find, ahead, list } = this.#store.operations
    const counts = (await stats({})).map(({ queue, counts, totals }) => ({ queue, counts, totals }))
    const ids = [...this.#pushed]
    const states = (await find({ ids })).map((job) => job && { state: job.state, priority: job.priority, key: job.key })
    const before = await Promise.all(ids.map((id) => ahead({ id })))
    const waiting: string[] = []
    let next: string | null = ''
    do {
      const after = next === '' ? {} : { after: next }
      const page = await list({ queue: 'q', state: 'waiting', limit: 3, ...after })
      waiting.push(...page.jobs.map((job) => job.id))
      next = page.next
    } while (next !== null)
    return { counts: counts.sort((a, b) => a.queue.localeCompare(b.queue)), states, before, waiting }
  }
}

test(`gives what a store with room for all gives, in ${RUNS} random sequences`, async () => {
  const property = fc.asyncProperty(fc.array(operation, { maxLength: 60, size: 'max' }), async (operations) => {
    const plain = await open('memory:', {})
    const spilling = await openSpilling()
    const [one, other] = [new Run(plain), new Run(spilling)]
    try {
      for (const [index, operation] of operations.entries()) {
        const expected = await one.do(operation)
        assert.deepEqual(await other.do(operation), expected, `step ${index + 1}: ${operation.op}`)
      }
    } finally {
      await plain.close()
      await spilling.close()
    }
  })
  await fc.assert(property, { numRuns: RUNS, ...(seed === undefined ? {} : { seed: Number(seed) }) })
})
