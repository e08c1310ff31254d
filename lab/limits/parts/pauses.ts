/** A handler answers with `ctx.rateLimited`: how long other processes still start jobs. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueOptions } from '../../../src/index.ts'
import { atMost } from '../../bars.ts'
import { median } from '../../statistics.ts'
import { withCrew, withPond } from '../crew.ts'
import { ms, type Part } from '../part.ts'
import { inGroup, pushJobs } from '../push.ts'
import { type Data, type Notes, QUEUE } from '../work.ts'

const PROCESSES = 4
const PAUSES = 20
const PAUSE = 500
/** Between the pauses, in ms. */
const BETWEEN = 500
const TAKES = 20
const CONCURRENCY = 10
/** As many as all processes could start between the pauses. */
const JOBS = ((PROCESSES * CONCURRENCY) / TAKES) * BETWEEN * (PAUSES + 10)

const CASES: Record<string, { options: QueueOptions; group: string }> = {
  'queue without limits': { options: {}, group: '' },
  'queue with a rate': { options: { limits: { rate: '1000/s' } }, group: '' },
  'a group': { options: { limits: { group: {} } }, group: 'one' },
}

/** Per pause, how long after the handler's answer the last job started before the pause was over; 0: none did. */
function latest({ starts, pauses }: Notes): number[] {
  return pauses.map(({ at, ms: length }) => {
    const during = starts.filter((start) => start.at >= at && start.at < at + length * 0.9)
    return Math.max(0, ...during.map((start) => start.at - at))
  })
}

export const pauses: Part = {
  title: `A 429 in one of ${PROCESSES} processes: the latest start after the handler’s answer`,
  head: ['what is paused', 'pauses', 'starts', 'the store had it after', 'median', 'worst'],
  stores: ['sqlite', 'postgres', 'redis'],
  async measure(_, fresh, { quick }) {
    const rows = []
    const count = quick ? PAUSES / 10 : PAUSES
    for (const [name, { options, group }] of Object.entries(CASES)) {
      const url = await fresh()
      const notes = await withPond(url, async (pond) => {
        const queue = pond.queue<Data>(QUEUE, options)
        await pushJobs(pond, options, quick ? JOBS / 4 : JOBS, () => group)
        const settings = { queue: options, concurrency: CONCURRENCY, takes: TAKES, noted: [] }
        return withCrew(pond, url, PROCESSES, settings, async (crew) => {
          while ((await crew.notes()).starts.length < 100) await sleep(50)
          for (let done = 0; done < count; done++) {
            const { id } = await queue.push(PAUSE, { priority: 9, ...inGroup(group) })
            while ((await crew.notes()).taken.length <= done) await sleep(20)
            // It would pause the queue again when it comes next.
            await pond.cancel(id)
            await sleep(PAUSE + BETWEEN)
          }
          return crew.notes()
        })
      })
      const late = latest(notes)
      const told = notes.pauses.map(({ at }, n) => (notes.taken[n] ?? Number.NaN) - at)
      const cells = [
        name,
        `${late.length}`,
        `${notes.starts.length}`,
        ms(median(told)),
        ms(median(late)),
        ms(Math.max(...late)),
      ]
      rows.push({ cells, bars: [atMost(Math.max(...late), 100, ' ms')] })
    }
    return rows
  },
}
