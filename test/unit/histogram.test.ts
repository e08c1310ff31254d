import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bucketOf, HistogramRecorder, merge, middleOf, percentile } from '../../src/values/figures/histogram.ts'
import { vectors } from './vectors.ts'

type Buckets = Record<number, number>
interface Vectors {
  buckets: { about: string; ms: number; bucket: number }[]
  bounds: { bucket: number; from: number; to: number; middle: number }[]
  percentiles: { about: string; buckets: Buckets; share: number; bucket: number | null }[]
  merges: { about: string; into: Buckets; from: Buckets; merged: Buckets }[]
}
const { buckets, bounds, percentiles, merges } = vectors<Vectors>('histogram')

const near = (one: number, other: number) => Math.abs(one - other) <= 1e-12 * Math.max(one, other)

describe('histogram', () => {
  for (const { about, ms, bucket } of buckets) {
    test(`${about}: ${ms} ms is in bucket ${bucket}`, () => assert.equal(bucketOf(ms), bucket))
  }

  for (const { bucket, from, to, middle } of bounds) {
    test(`bucket ${bucket} goes from ${from} to ${to} ms`, () => {
      assert.ok(near(middleOf(bucket), middle), `${middleOf(bucket)}`)
      if (bucket === 0) return
      // Its bounds, in the whole microseconds that are counted.
      const first = Math.ceil(from * 1000 - 1e-9)
      const last = Math.ceil(to * 1000 - 1e-9) - 1
      if (last > 2 ** 50) return
      assert.equal(bucketOf(first / 1000), bucket)
      assert.equal(bucketOf(last / 1000), bucket)
      assert.equal(bucketOf((last + 1) / 1000) > bucket, true)
      assert.equal(bucketOf((first - 1) / 1000) < bucket, true)
    })
  }

  test('no value told is off by more than 4.5 %', () => {
    for (let ms = 0.02; ms < 1e7; ms *= 1.013) {
      const told = middleOf(bucketOf(ms))
      // Below 20 µs the rounding to whole microseconds adds to it.
      assert.ok(Math.abs(told - ms) / ms < 0.045 + 0.0005 / ms, `${ms} is told as ${told}`)
    }
  })

  test('buckets rise with the values', () => {
    let last = 0
    for (let ms = 0; ms < 1e6; ms = ms * 1.01 + 0.001) {
      const bucket = bucketOf(ms)
      assert.ok(bucket >= last)
      last = bucket
    }
  })

  for (const { about, buckets, share, bucket } of percentiles) {
    test(`percentile ${share}: ${about}`, () => {
      assert.equal(percentile(buckets, share), bucket === null ? undefined : middleOf(bucket))
    })
  }

  for (const { about, into, from, merged } of merges) {
    test(`merge: ${about}`, () => {
      const sum = { ...into }
      const before = { ...from }
      merge(sum, from)
      assert.deepEqual(sum, merged)
      assert.deepEqual(from, before)
    })
  }

  test('a recorder keeps priorities and metrics apart, and starts anew when taken from', () => {
    const recorder = new HistogramRecorder('q')
    assert.deepEqual(recorder.take(), [])
    recorder.add(4, 'wait', 1)
    recorder.add(4, 'wait', 1)
    recorder.add(4, 'run', 1000)
    recorder.add(9, 'run', 0)
    assert.deepEqual(recorder.take(), [
      { queue: 'q', priority: 4, metric: 'wait', buckets: { 80: 2 } },
      { queue: 'q', priority: 4, metric: 'run', buckets: { 160: 1 } },
      { queue: 'q', priority: 9, metric: 'run', buckets: { 0: 1 } },
    ])
    assert.deepEqual(recorder.take(), [])
    recorder.add(9, 'wait', 1)
    assert.deepEqual(recorder.take(), [{ queue: 'q', priority: 9, metric: 'wait', buckets: { 80: 1 } }])
  })
})
