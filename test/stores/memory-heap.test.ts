/** The heap against a sorted array: first, add and remove from anywhere. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Heap } from '../../src/stores/memory/heap.ts'
import { Job } from '../../src/stores/memory/job.ts'
import { byDue } from '../../src/stores/memory/queue.ts'
import { newJob } from '../support/jobs.ts'

test('gives the first at any time, and lets go of any', () => {
  // Without bias: values near the ends would leave all heaps alike.
  const dueAt = fc.noBias(fc.nat(1_000))
  const step = fc.record({ add: fc.array(dueAt, { maxLength: 4 }), remove: fc.noBias(fc.nat(1_000)) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
      const heap = new Heap(byDue)
      const jobs: Job[] = []
      steps.forEach(({ add, remove }, place) => {
        for (const due of add) {
          const job = new Job(newJob(), { attempts: 1, timeout: null }, place, 0, due)
          heap.add(job)
          jobs.push(job)
        }
        const [gone] = jobs.splice(remove % Math.max(1, jobs.length), 1)
        if (gone !== undefined) {
          heap.remove(gone)
          assert.equal(gone.index, -1)
        }
        assert.equal(heap.size, jobs.length)
        assert.equal(heap.first?.dueAt ?? Number.POSITIVE_INFINITY, Math.min(...jobs.map((job) => job.dueAt)))
      })
      for (const job of jobs.sort((a, b) => a.dueAt - b.dueAt || a.place - b.place)) {
        assert.equal(heap.first?.dueAt, job.dueAt)
        if (heap.first !== undefined) heap.remove(heap.first)
      }
      assert.equal(heap.first, undefined)
    }),
    { numRuns: 300 },
  )
})
