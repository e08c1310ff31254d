/** A hundred thousand of a million dead jobs go back to work, chosen by the text of their error, while workers run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'
import { atLeast } from '../bars.ts'
import { Child, holds } from '../child.ts'
import type { Experiment } from '../experiment.ts'
import { some, whole } from '../flags.ts'
import { tell } from '../progress.ts'

const MIN_RATE = 20_000
const BATCH = 1000
const QUEUE = 'numbers'
/** One dead job in so many is meant. */
const SHARE = 10
const TEXT = 'reset by peer'
const DAY = 86_400_000

const flags = {
  stores: some(['sqlite-normal', 'redis', 'postgres'] as const),
  jobs: whole('that are dead', '1M', '20k'),
}

export const bulk: Experiment<typeof flags> = {
  id: 'bulk',
  flags,
  about: ({ jobs }) =>
    `${jobs.toLocaleString('en')} dead jobs, of which requeueAll({ errorText }) chooses ${(jobs / SHARE).toLocaleString('en')}; a worker in another process works those off meanwhile.`,
  async *measure({ stores, jobs }, stage) {
    const rows = []
    for (const name of stores) {
      const url = await (await stage.place(name)).fresh()
      const store = await openStore(url, {})
      await fill(store, jobs)
      await store.close()
      const worker = await Child.start(new URL('../move/worker.ts', import.meta.url), [url])
      const pond = await Millpond.open(url)
      const queue = pond.queue<number>(QUEUE)
      tell(`${name}: requeues`)
      const began = performance.now()
      const { changed: count } = await queue.requeueAll({ errorText: TEXT })
      const ms = performance.now() - began
      await sleep(BATCH)
      const { ran } = await worker.tell(holds<{ ran: number[] }>('ran'))
      await worker.stop()
      const { waiting, dead } = (await queue.stats()).counts
      await pond.close()
      const wrong = ran.filter((n) => n % SHARE !== 0).length + Math.abs(jobs / SHARE - waiting - ran.length)
      const rate = (count / ms) * 1000
      rows.push({
        cells: [name, `${count}`, `${dead}`, `${ran.length}`, `${wrong}`, Math.round(rate).toLocaleString('en')],
        bars: [atLeast(rate, MIN_RATE, '/s')],
        figures: { name, count, dead, waiting, ran: ran.length, wrong, ms, rate },
      })
    }
    yield { head: ['store', 'requeued', 'still dead', 'ran meanwhile', 'wrong ones', 'jobs/s'], rows }
  },
}

async function fill({ operations }: Store, jobs: number): Promise<void> {
  await operations.configure({ queue: QUEUE, capacity: null, keepDone: DAY, keepDead: DAY })
  for (let from = 0; from < jobs; from += BATCH) {
    tell(`fills: ${from.toLocaleString('en')} of ${jobs.toLocaleString('en')}`)
    const records = Array.from({ length: Math.min(BATCH, jobs - from) }, (_, n) => deadJob(from + n))
    await operations.restore({ records })
  }
}

function deadJob(n: number): JobRecord {
  const now = Date.now()
  const message = n % SHARE === 0 ? `the connection was ${TEXT}` : 'the mailbox is full'
  return {
    ...{
      id: newId(),
      queue: QUEUE,
      state: 'dead',
      priority: 4,
      attempt: 3,
      attempts: 3,
      fence: 3,
      key: null,
      group: null,
    },
    ...{
      cost: 1,
      timeout: null,
      trace: null,
      pushedAt: now,
      dueAt: now,
      startedAt: now,
      finishedAt: now,
      worker: 'lab',
    },
    ...{ data: { encoding: 'json', body: `${n}` }, progress: null, result: null },
    error: { code: 'HandlerFailed', name: 'Error', message },
  }
}
