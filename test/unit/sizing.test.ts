import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillpondError, plan } from '../../src/index.ts'
import { type Demand, type Sizing, sizing } from '../../src/values/figures/sizing.ts'
import { vectors } from './vectors.ts'

const { cases } = vectors<{ cases: { about: string; in: Demand; out: Sizing | null }[] }>('sizing')

/** The figures are given to nine digits. */
function isNear(actual: number, expected: number, name: string): void {
  assert.ok(Math.abs(actual - expected) <= Math.abs(expected) * 1e-6, `${name}: ${actual}, not ${expected}`)
}

describe('sizing', () => {
  for (const { about, in: demand, out } of cases) {
    test(about, () => {
      const actual = sizing(demand)
      if (out === null || actual === undefined) return assert.equal(actual ?? null, out)
      assert.equal(actual.workers, out.workers)
      assert.equal(actual.queue, out.queue)
      for (const name of ['load', 'utilization', 'drain'] as const) isNear(actual[name], out[name], name)
      for (const name of ['mean', 'longest'] as const) isNear(actual.wait[name], out.wait[name], `wait.${name}`)
    })
  }

  test('the mean wait of a lasting rate is that of many simulated jobs', () => {
    // M/M/3: arrivals and run times are exponential; each job goes to the worker that is free first.
    const demand = { rate: 2.4, work: 1, variation: 1, surge: null, drainWithin: 60, backlog: 0, wait: 2 }
    const expected = sizing(demand)
    assert.equal(expected?.workers, 3)
    let seed = 42
    const random = () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      return (seed + 1) / 2 ** 32
    }
    const exponential = (mean: number) => -Math.log(random()) * mean
    const free = [0, 0, 0]
    let [now, waited] = [0, 0]
    const jobs = 300_000
    for (let n = 0; n < jobs; n++) {
      now += exponential(1 / demand.rate)
      const first = free.indexOf(Math.min(...free))
      const start = Math.max(now, free[first] ?? 0)
      waited += start - now
      free[first] = start + exponential(1)
    }
    const mean = waited / jobs
    assert.ok(Math.abs(mean / (expected?.wait.mean ?? 0) - 1) < 0.05, `${mean}, not ${expected?.wait.mean}`)
  })
})

describe('plan', () => {
  test('takes rates and times as they are written, and answers in milliseconds', () => {
    const { formulas, ...figures } = plan({
      rate: '100/s',
      work: '5s',
      surge: '30s',
      drainWithin: '1m',
      concurrency: 20,
    })
    assert.deepEqual([figures.workers, figures.processes, figures.queue, figures.load], [167, 9, 1_998, 500])
    assert.equal(Math.round(figures.drain), 59_820)
    assert.deepEqual(
      formulas.map(({ figure }) => figure),
      ['load', 'workers', 'queue', 'drain, longest wait'],
    )
    assert.equal(plan({ rate: 100, work: 5_000, surge: 30_000, drainWithin: 60_000 }).workers, 167)
    assert.equal(plan({ rate: '6000/m', work: '5s' }).workers, 501)
  })

  test('a surge is drained within its own length, a job waits as long as it runs, unless it is said otherwise', () => {
    assert.equal(plan({ rate: 100, work: '5s', surge: '30s' }).workers, 250)
    const { wait } = plan({ rate: 0.5, work: '1s' })
    assert.ok(Math.abs(wait.mean - 1_000) < 1e-6)
    assert.equal(plan({ rate: 0.5, work: '1s', wait: '500ms' }).workers, 2)
  })

  const wrong: Record<string, object> = {
    'no rate': { work: '1s' },
    'no work': { rate: 1 },
    'a rate below 0': { rate: -1, work: '1s' },
    'a rate in words': { rate: 'many', work: '1s' },
    'no time for a backlog': { rate: 1, work: '1s', backlog: 5, drainWithin: 0 },
    'a variation below 0': { rate: 1, work: '1s', variation: -1 },
    'more workers than there are': { rate: 1_000_000, work: '1h' },
    'an unknown option': { rate: 1, work: '1s', workers: 3 },
  }
  for (const [what, options] of Object.entries(wrong)) {
    test(`refused: ${what}`, () => {
      assert.throws(
        () => Reflect.apply(plan, undefined, [options]),
        (error) => isMillpondError(error, 'InvalidOption'),
      )
    })
  }
})
