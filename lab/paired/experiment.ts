/**
 * What a plain job costs in this checkout, beside another one: both run in turn, so that a slow spell of the machine falls on both. The
 * CPU of all processes sways less than the rate when the machine is busy.
 */
import { resolve } from 'node:path'
import { atMost } from '../bars.ts'
import { HERE } from '../checkout.ts'
import { Child, holds } from '../child.ts'
import { treeCpu } from '../cpu.ts'
import type { Experiment, Row, Stage, Table } from '../experiment.ts'
import { on, some, text, whole } from '../flags.ts'
import { tell } from '../progress.ts'
import { mean, median } from '../statistics.ts'
import { run } from '../users/run.ts'
import { PARTS } from '../users/usage.ts'
import { ABOUT, WORKS, type Work } from './work.ts'

const STORES = ['memory', 'sqlite', 'postgres', 'redis'] as const
type StoreName = (typeof STORES)[number]
/** Jobs of a round. */
const JOBS: Record<StoreName, number> = { memory: 200_000, sqlite: 100_000, postgres: 50_000, redis: 100_000 }
/** Rounds that only warm a process up. */
const WARMING = 2
/** The most CPU that a job may take here, of what it takes there. */
const MOST = 1.05

const flags = {
  before: text('DIR', 'the other checkout, with its packages installed'),
  only: some(STORES),
  works: some(WORKS),
  runs: whole('of each checkout, in turn', '5', '1'),
  rounds: whole('of a process', '3', '1'),
  share: whole('per cent of the jobs of a round', '100', '5'),
  users: on('also experiment E1 with 5 connections'),
  seconds: whole('of load in E1', '6', '2'),
}

interface Cost {
  /** Jobs/s. */
  rate: number
  /** µs of all processes per job. */
  cpu: number
}
const SIDES = ['before', 'here'] as const
type Side = (typeof SIDES)[number]

export const paired: Experiment<typeof flags> = {
  id: 'paired',
  flags,
  about: ({
    before,
    runs,
    rounds,
  }) => `Plain jobs in this checkout, beside ${before || 'the same'}: medians of ${runs} runs.
A run is a fresh process of each checkout, in turn, with ${WARMING} rounds to warm up and ${rounds} that count. × here: CPU of this checkout as a multiple of the other's, and its rate likewise; medians of the runs' own ratios.`,
  async *measure({ before, only, works, runs, rounds, share, users, seconds }, stage) {
    const checkouts: Record<Side, string> = { before: before === '' ? HERE : resolve(before), here: HERE }
    for (const store of only) {
      const count = Math.ceil((JOBS[store] * share) / 100)
      const costs = new Map<string, Cost[]>()
      for (const work of works) {
        await alternate(runs, async (side, at) => {
          tell(`${store}, ${ABOUT[work]}, ${side}, run ${at + 1} of ${runs}`)
          const cost = await measured(checkouts[side], store, work, { count, rounds }, stage)
          costs.set(`${work} ${side}`, [...(costs.get(`${work} ${side}`) ?? []), cost])
        })
      }
      yield tableOf(store, works, costs)
    }
    if (users) for (const store of only) if (store !== 'memory') yield usersOf(store, runs, seconds, checkouts, stage)
  },
}

/** A B, B A, A B … */
async function alternate(runs: number, perform: (side: Side, run: number) => Promise<void>): Promise<void> {
  for (let at = 0; at < runs; at++)
    for (const side of at % 2 === 0 ? SIDES : SIDES.toReversed()) await perform(side, at)
}

async function measured(
  checkout: string,
  store: StoreName,
  work: Work,
  { count, rounds }: { count: number; rounds: number },
  stage: Stage,
): Promise<Cost> {
  const url = await (await stage.place(store)).fresh()
  const child = await Child.start(new URL('member.ts', import.meta.url), [checkout, url, `${count}`])
  const perform = (what: string) => child.tell(holds<{ jobs: number }>('jobs'), `${what} ${work}`)
  const costs: Cost[] = []
  try {
    for (let round = 0; round < WARMING + rounds; round++) {
      await perform('prepare')
      const [began, used] = [performance.now(), treeCpu(process.pid)]
      const { jobs } = await perform('work')
      const took = performance.now() - began
      const cost = { rate: (jobs / took) * 1000, cpu: ((treeCpu(process.pid) - used) * 1e6) / jobs }
      if (round >= WARMING) costs.push(cost)
    }
  } finally {
    await child.stop()
  }
  // CPU is counted in hundredths of a second: the sum has the finer figure.
  return { rate: median(costs.map(({ rate }) => rate)), cpu: mean(costs.map(({ cpu }) => cpu)) }
}

const of = (costs: readonly Cost[] | undefined, figure: keyof Cost): number[] =>
  (costs ?? []).map((cost) => cost[figure])

/** Of each run, what is here as a multiple of what was before. */
const ratio = (before: readonly number[], here: readonly number[]): number =>
  median(here.map((value, at) => value / (before[at] ?? Number.NaN)))

function tableOf(store: StoreName, works: readonly Work[], costs: ReadonlyMap<string, readonly Cost[]>): Table {
  const rows = works.map((work): Row => {
    const [before, here] = SIDES.map((side) => costs.get(`${work} ${side}`))
    const cpu = ratio(of(before, 'cpu'), of(here, 'cpu'))
    const rate = ratio(of(before, 'rate'), of(here, 'rate'))
    const cells = [
      ABOUT[work],
      ...[before, here].map((each) => median(of(each, 'cpu')).toFixed(2)),
      `**${cpu.toFixed(3)}**`,
      ...[before, here].map((each) => Math.round(median(of(each, 'rate'))).toLocaleString('en')),
      rate.toFixed(3),
    ]
    return { cells, bars: [atMost(cpu, MOST, ' ×')], figures: { store, work, before, here, cpu, rate } }
  })
  return { title: store, head: ['', 'before: CPU µs', 'here', '× here', 'before: jobs/s', 'here', '× here'], rows }
}

/** The load generator's share is left out of no figure: it is the same for both. */
async function usersOf(
  store: 'sqlite' | 'postgres' | 'redis',
  runs: number,
  seconds: number,
  checkouts: Record<Side, string>,
  stage: Stage,
): Promise<Table> {
  const { placesOf } = await import('../users/places.ts')
  const places = await placesOf(stage, false)
  const costs: Record<Side | 'insert', Cost[]> = { before: [], here: [], insert: [] }
  const timing = { seconds, warming: 3, patience: 30 }
  const cost = async (name: 'insert' | typeof store, checkout: string): Promise<Cost> => {
    const { rate, cpu } = await run(name, 5, timing, { ...(await places()), checkout })
    return { rate, cpu: cpu === undefined ? Number.NaN : PARTS.reduce((sum, part) => sum + cpu[part], 0) }
  }
  await alternate(runs, async (side, at) => {
    tell(`E1 on ${store}, ${side}, run ${at + 1} of ${runs}`)
    costs[side].push(await cost(store, checkouts[side]))
    if (side === 'here') costs.insert.push(await cost('insert', HERE))
  })
  const row = (title: string, side: Side | 'insert'): Row => {
    const cells = [
      title,
      median(of(costs[side], 'cpu')).toFixed(0),
      ratio(of(costs.insert, 'cpu'), of(costs[side], 'cpu')).toFixed(3),
      ratio(of(costs.before, 'cpu'), of(costs[side], 'cpu')).toFixed(3),
      Math.round(median(of(costs[side], 'rate'))).toLocaleString('en'),
    ]
    return { cells, bars: [], figures: { store, side, costs: costs[side] } }
  }
  return {
    title: `E1 on ${store}, 5 connections`,
    head: ['', 'CPU µs per request', '× insert first', '× before', 'requests/s'],
    rows: [row('insert first', 'insert'), row('before', 'before'), row('here', 'here')],
  }
}
