/**
 * What people look at, on stores that hold millions of jobs: each view of the dashboard and the command line, and what an open dashboard
 * and a scrape of metrics cost the server. Linux only.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/stores/open.ts'
import { atMost } from '../bars.ts'
import { Child } from '../child.ts'
import { processes } from '../cpu.ts'
import type { Experiment, Row } from '../experiment.ts'
import { positive, some, whole } from '../flags.ts'
import { tell } from '../progress.ts'
import { median } from '../statistics.ts'
import { fill } from './fill.ts'
import { looksAt } from './looks.ts'

/** Most that a view may take, in milliseconds, and an open dashboard of a core in the store, in per cent. */
const MOST_TIME = 300
const MOST_CPU = 2
/** Rows of the report: the slowest views, and all that miss the bar. */
const SLOWEST = 25
/** From the last job until the measurement begins, in milliseconds. */
const SETTLE = 5000

const flags = {
  stores: some(['sqlite-normal', 'redis', 'postgres'] as const),
  postgres: positive('jobs in PostgreSQL', '10M', '40k'),
  jobs: positive('jobs in each other store', '1M', '40k'),
  groups: whole('of each grouped queue', '10000', '200'),
  queues: whole('beside them, with a job each', '1000', '50'),
  samples: whole('looks of each kind; their median counts', '5', '3'),
  seconds: whole('for which a dashboard is open', '60', '5'),
}

export const views: Experiment<typeof flags> = {
  id: 'views',
  flags,
  about: ({ postgres, jobs, groups, samples }) =>
    `PostgreSQL with ${postgres.toLocaleString('en')} jobs, others with ${jobs.toLocaleString('en')}; ${groups.toLocaleString('en')} groups in each of two queues; medians of ${samples} looks.`,
  async *measure({ stores, groups, queues, samples, seconds, ...sizes }, stage) {
    for (const name of stores) {
      const place = await stage.place(name)
      const url = await place.fresh()
      const store = await openStore(url, {})
      const jobs = name === 'postgres' ? sizes.postgres : sizes.jobs
      // Of ten parts, four wait in each of two queues, one in the third, and one has ended.
      const each = Math.round((jobs * 4) / 10)
      await fill(store, { each, unclaimed: Math.round(jobs / 10), groups, queues })
      await sleep(SETTLE)
      const rows: Row[] = []
      for (const { name: view, ask } of await looksAt(store)) {
        tell(`${name}: ${view}`)
        const times: number[] = []
        for (let n = 0; n < samples; n++) {
          const began = performance.now()
          await ask()
          times.push(performance.now() - began)
        }
        const time = median(times)
        rows.push({
          cells: [view, time.toFixed(1), Math.max(...times).toFixed(1)],
          bars: [atMost(time, MOST_TIME, ' ms')],
          figures: { view, times },
        })
      }
      const slowestFirst = rows.toSorted((a, b) => Number(b.cells[1]) - Number(a.cells[1]))
      const isMissed = ({ bars }: Row) => bars.some(({ cleared }) => !cleared)
      const shown = slowestFirst.filter((row, at) => at < SLOWEST || isMissed(row))
      yield {
        title: `${name}: views`,
        head: ['view', 'median, ms', 'most, ms'],
        rows: shown,
        notes: [`${rows.length} views; those that are not here take less.`],
      }
      await store.close()
      // SQLite has no server: what looks do there is part of the process that asks.
      if (name !== 'sqlite-normal') yield { title: `${name}: onlookers`, ...(await onlookers(url, seconds)) }
    }
  },
}

async function onlookers(url: string, seconds: number) {
  const rows: Row[] = []
  for (const what of ['nobody', 'dashboard', 'metrics']) {
    tell(what)
    const child =
      what === 'nobody' ? undefined : await Child.start(new URL('onlooker.ts', import.meta.url), [what, url])
    await sleep(SETTLE)
    const used = ((await cpuOf(url, seconds)) / seconds) * 100
    await child?.stop()
    const bars = what === 'dashboard' ? [atMost(used, MOST_CPU, ' %')] : []
    rows.push({ cells: [what, used.toFixed(2)], bars, figures: { what, used } })
  }
  return { head: ['onlooker', 'CPU of the server, % of a core'], rows }
}

/**
 * Seconds that Redis, or the sessions of PostgreSQL, use in so many seconds. What vacuum does has nothing to do with looks. Sessions come
 * and go, so all are looked at once a second.
 */
async function cpuOf(url: string, seconds: number): Promise<number> {
  const { port, protocol } = new URL(url)
  const isServer = (title: string) =>
    protocol === 'redis:' ? title.includes('redis-server') && title.includes(`:${port}`) : SESSION.test(title)
  const all = () => [...(processes()?.entries() ?? [])].filter(([, { title }]) => isServer(title))
  const before = new Map(all().map(([pid, { own }]) => [pid, own]))
  const last = new Map(before)
  for (let second = 0; second < seconds; second++) {
    await sleep(1000)
    for (const [pid, { own }] of all()) last.set(pid, own)
  }
  return [...last].reduce((sum, [pid, own]) => sum + own - (before.get(pid) ?? 0), 0)
}

/** Such as `postgres: postgres bench 127.0.0.1(50312) idle`, of the place's database. */
const SESSION = /^postgres: \S+ bench \S+\(\d+\)/
