/** A job of another group behind a million: how long until it starts; and whether weights are kept. */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost } from '../../bars.ts'
import { machineTime } from '../../clock.ts'
import { median } from '../../statistics.ts'
import { withCrew, withPond } from '../crew.ts'
import { ms, type Part } from '../part.ts'
import { pushJobs } from '../push.ts'
import { type Data, QUEUE } from '../work.ts'

const PROCESSES = 2
const CONCURRENCY = 10
const WAITING = 1_000_000
const NEWCOMERS = 20
const JUDGED = 10_000
const WEIGHTS = { one: 1, two: 2, four: 4 }
const options = { capacity: null, limits: { group: {} } }

/** Between the call of `push` and the start, in ms, one job after the other. */
async function newcomers(url: string, waiting: number): Promise<number[]> {
  return withPond(url, async (pond) => {
    await pushJobs(pond, options, waiting, () => 'large')
    const settings = { queue: options, concurrency: CONCURRENCY, takes: 10, noted: ['small'] }
    return withCrew(pond, url, PROCESSES, settings, async (crew) => {
      const queue = pond.queue<Data>(QUEUE, options)
      while ((await queue.stats()).counts.done < 1000) await sleep(50)
      const waits: number[] = []
      while (waits.length < NEWCOMERS) {
        const from = machineTime()
        await queue.push(null, { group: 'small' })
        for (let at: number | undefined; at === undefined; ) {
          await sleep(20)
          at = (await crew.notes()).starts[waits.length]?.at
          if (at !== undefined) waits.push(at - from)
        }
      }
      return waits
    })
  })
}

/** The first starts by group. */
async function shares(url: string, judged: number): Promise<Map<string, number>> {
  return withPond(url, async (pond) => {
    const queue = pond.queue<Data>(QUEUE, options)
    for (const [group, weight] of Object.entries(WEIGHTS)) await queue.limitGroup(group, { weight })
    await queue.pause()
    await pushJobs(pond, options, judged * 3, Object.keys(WEIGHTS))
    const settings = { queue: options, concurrency: CONCURRENCY, takes: 1, noted: [] }
    return withCrew(pond, url, PROCESSES, settings, async (crew) => {
      await queue.resume()
      for (;;) {
        const { starts } = await crew.notes()
        if (starts.length >= judged) {
          const counts = Map.groupBy(starts.slice(0, judged), ({ group }) => group)
          return new Map([...counts].map(([group, own]) => [group, own.length]))
        }
        await sleep(50)
      }
    })
  })
}

export const fair: Part = {
  title: 'A newcomer behind a million jobs of one group, and shares by weight',
  head: ['waiting', 'newcomers', 'median', 'worst', `starts by weight 1 : 2 : 4, of ${JUDGED}`],
  stores: ['memory', 'sqlite', 'postgres', 'redis'],
  async measure(_, fresh, { quick }) {
    const waiting = quick ? WAITING / 10 : WAITING
    const waits = await newcomers(await fresh(), waiting)
    const counts = await shares(await fresh(), JUDGED)
    const all = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0)
    const got = Object.keys(WEIGHTS).map((group) => counts.get(group) ?? 0)
    const off = Object.values(WEIGHTS).map((weight, at) => Math.abs((got[at] ?? 0) / ((JUDGED * weight) / all) - 1))
    return [
      {
        cells: [`${waiting}`, `${waits.length}`, ms(median(waits)), ms(Math.max(...waits)), got.join(' : ')],
        bars: [atMost(Math.max(...waits), 100, ' ms'), atMost(Math.max(...off) * 100, 3, ' % off')],
      },
    ]
  },
}
