/** A rate over several processes: as many starts as it allows, and never more. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Millpond, QueueOptions } from '../../../src/index.ts'
import { atLeast, atMost } from '../../bars.ts'
import { machineTime } from '../../clock.ts'
import { type Crew, withCrew, withPond } from '../crew.ts'
import type { Part } from '../part.ts'
import { pushJobs } from '../push.ts'
import { QUEUE } from '../work.ts'

const PROCESSES = 4
const RATE = 100
const BURST = 10
const SECONDS = 60
const options: QueueOptions = { limits: { rate: `${RATE}/s` } }

/** The most that lie within so many ms, wherever these begin. */
export function mostWithin(times: readonly number[], length: number): number {
  let most = 0
  let first = 0
  for (const [at, time] of times.entries()) {
    while (time - (times[first] ?? 0) >= length) first++
    most = Math.max(most, at - first + 1)
  }
  return most
}

async function firstStart(crew: Crew): Promise<number> {
  for (;;) {
    const [first] = (await crew.notes()).starts
    if (first !== undefined) return first.at
    await sleep(50)
  }
}

/** When the store says that the jobs started, in order. A job itself may begin late, on a busy machine, and another after it on time. */
async function storedStarts(pond: Millpond): Promise<number[]> {
  const times: number[] = []
  for (let after: string | undefined; ; ) {
    const page = await pond.queue(QUEUE).jobs('done', { limit: 1000, ...(after === undefined ? {} : { after }) })
    for (const { startedAt } of page) if (startedAt !== null) times.push(startedAt.getTime())
    after = page.at(-1)?.cursor
    if (after === undefined) return times.sort((a, b) => a - b)
  }
}

export const rates: Part = {
  title: `A rate of ${RATE}/s over ${PROCESSES} processes`,
  head: ['seconds', 'started', 'of what is allowed', 'most in any second, by the jobs', 'by the store'],
  stores: ['sqlite', 'postgres', 'redis'],
  async measure(_, fresh, { quick }) {
    const url = await fresh()
    const seconds = quick ? SECONDS / 3 : SECONDS
    const { times, stored } = await withPond(url, async (pond) => {
      await pushJobs(pond, options, RATE * (seconds + 5), () => 'any')
      const settings = { queue: options, concurrency: 10, takes: 0, noted: [] }
      return withCrew(pond, url, PROCESSES, settings, async (crew) => {
        const from = await firstStart(crew)
        await sleep(from + (seconds + 1) * 1000 - machineTime())
        const until = from + seconds * 1000
        const times = (await crew.notes()).starts.map(({ at }) => at).filter((at) => at < until)
        return { times, stored: await storedStarts(pond) }
      })
    })
    const share = times.length / (seconds * RATE)
    const most = mostWithin(stored, 1000)
    return [
      {
        cells: [
          `${seconds}`,
          `${times.length}`,
          `${(share * 100).toFixed(2)} %`,
          `${mostWithin(times, 1000)}`,
          `${most}`,
        ],
        bars: [
          atLeast(times.length, seconds * RATE * 0.99),
          atMost(times.length, seconds * RATE * 1.01),
          atMost(most, RATE + BURST, ' in a second of the store'),
        ],
      },
    ]
  },
}
