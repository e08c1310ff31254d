/** The lab's statistics, and its figures as text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atLeast, atMost, isWorthAWord } from '../../lab/bars.ts'
import { shown } from '../../lab/report/units.ts'
import { curveOf, mean, median, percentiles, quantile } from '../../lab/statistics.ts'

test('quantiles are interpolated, whatever the order', () => {
  assert.equal(median([3, 1, 2]), 2)
  assert.equal(median([4, 1, 3, 2]), 2.5)
  assert.equal(quantile([10, 0], 0.25), 2.5)
  assert.equal(quantile([7], 0.99), 7)
  assert.ok(Number.isNaN(median([])))
  assert.equal(mean([1, 2, 6]), 3)
})

test('a curve has no percentile that its few values cannot tell', () => {
  const shares = (count: number) => curveOf(Array.from({ length: count }, (_, at) => at)).map(([share]) => share)
  assert.deepEqual(shares(0), [])
  assert.equal(shares(20).at(-1), 0.95)
  assert.equal(shares(1000).at(-1), 0.999)
})

test('percentiles on a logarithmic axis: 90 %, 99 % and 99.9 % are equally far apart', () => {
  const xs = percentiles([
    [0.9, 1],
    [0.99, 2],
    [0.999, 3],
    [1, 4],
  ]).map(([x]) => Math.round(Math.log10(x) * 1e6) / 1e6)
  assert.deepEqual(xs, [1, 2, 3])
})

test('figures have at most three digits that count', () => {
  const table: [string, Parameters<typeof shown>][] = [
    ['1,230', [1234.5, 'count']],
    ['12.3 M', [12_345_678, 'count']],
    ['0', [0, 'count']],
    ['1,230/s', [1234.5, 'per second']],
    ['12.3 ms', [12.34, 'ms']],
    ['1.5 s', [1500, 'ms']],
    ['2.5 min', [150, 's']],
    ['4.17 h', [15_000, 's']],
    ['750 µs', [750, 'µs']],
    ['1.5 KiB', [1536, 'bytes']],
    ['1.5 ×', [1.5, 'times']],
    ['99.9 %', [1000, 'percentile']],
    ['∞', [null, 'ms']],
    ['–', [undefined, 'ms']],
    ['> 2 s', ['> 2 s', 'ms']],
  ]
  for (const [words, given] of table) assert.equal(shown(...given), words, JSON.stringify(given))
})

test('a share is never rounded up: a single failure must show', () => {
  assert.equal(shown(0.99999, 'share'), '99.9 %')
  assert.equal(shown(0.00001, 'share'), '< 0.1 %')
  assert.equal(shown(1, 'share'), '100 %')
})

test('a promise tells what was promised, what was got, and whether it was near', () => {
  assert.deepEqual(atMost(55, 50, ' ms'), { text: '≤ 50 ms', got: '55 ms', cleared: false, near: true })
  assert.equal(atLeast(0.79, 0.8, ' × no-op').text, '≥ 0.8 × no-op')
  assert.ok(!isWorthAWord(atMost(0, 0, ' lost')))
  assert.ok(isWorthAWord(atMost(1, 0, ' lost')))
})
