/** Log-spaced histograms as Prometheus histograms. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { histogramSeries } from '../../src/metrics/histogram-series.ts'
import { bucketOf, middleOf } from '../../src/values/figures/histogram.ts'

test('each bound counts exactly the values below it, and the sum is near', () => {
  const durations = fc.array(fc.double({ min: 0, max: 1e8, noNaN: true }), { maxLength: 200 })
  fc.assert(
    fc.property(durations, (times) => {
      const buckets: Record<number, number> = {}
      for (const ms of times) buckets[bucketOf(ms)] = (buckets[bucketOf(ms)] ?? 0) + 1
      const series = histogramSeries({ queue: 'q' }, buckets)
      for (const { suffix, labels, value } of series) {
        if (suffix !== '_bucket' || labels.le === '+Inf') continue
        // Values are measured in whole microseconds.
        const below = times.filter((ms) => Math.round(ms * 1000) < Number(labels.le) * 1e6).length
        assert.equal(value, below, `le ${labels.le}`)
      }
      const of = (suffix: string) => series.find((sample) => sample.suffix === suffix)?.value ?? Number.NaN
      assert.equal(of('_count'), times.length)
      assert.equal(series.find(({ labels }) => labels.le === '+Inf')?.value, times.length)
      const sum = times.reduce((all, ms) => all + middleOf(bucketOf(ms)), 0) / 1000
      assert.ok(Math.abs(of('_sum') - sum) <= 1e-9 * (1 + sum))
    }),
  )
})

test('bounds are in seconds, from 0.26 ms to 19 hours, each twice the one before', () => {
  const bounds = histogramSeries({}, {}).flatMap(({ labels }) => (labels.le === undefined ? [] : [labels.le]))
  assert.deepEqual([bounds[0], bounds.at(-2), bounds.at(-1), bounds.length], ['0.000256', '68719.476736', '+Inf', 30])
})
