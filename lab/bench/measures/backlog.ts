/**
 * Pushes, and a drain, while very many jobs wait. The drain is timed between two of its jobs, well after its start; `size`
 * jobs still wait when it ends. PostgreSQL's tables are vacuumed and analysed before, as autovacuum does in the time that such a
 * backlog takes to grow.
 */
import pg from 'pg'
import { median } from '../../statistics.ts'
import { Calls, LOOKS } from '../../store.ts'
import { openContender } from '../contender.ts'
import type { Measure, Outcome } from '../task.ts'
import { SLOTS } from './drain.ts'
import { WAYS } from './push.ts'
import { rate } from './rounds.ts'

/** Share of what is measured that goes before, uncounted. */
const WARMING = 0.2
const QUEUE = 'backlog'
const LOOKED = 21

export const backlog: Measure<'backlog'> = async ({ contender: name, url, size, push, drain }) => {
  const warmPush = Math.ceil(push * WARMING)
  const warmDrain = Math.ceil(drain * WARMING)
  const contender = await openContender(name, { url, concurrency: SLOTS, forget: false })
  let handled = 0
  let began = 0
  let ended = 0
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const line = contender.line(QUEUE, async () => {
    handled++
    if (handled === warmDrain) began = performance.now()
    if (handled !== warmDrain + drain) return
    ended = performance.now()
    finish()
  })
  const filled = await rate(size, () => WAYS.bulk2(line, size))
  await tidy(url)
  const looks = name === 'Millpond' ? await looked(url) : {}
  await WAYS.flight(line, warmPush)
  const pushed = await rate(push, () => WAYS.flight(line, push))
  // What is drained comes on top of the backlog.
  const more = Math.max(0, warmDrain + drain - warmPush - push)
  await WAYS.bulk(line, more)
  globalThis.gc?.()
  line.work()
  await finished
  return { fill: filled.perSecond, push: pushed.perSecond, drain: (drain / (ended - began)) * 1000, ...looks }
}

/** Milliseconds of each look at our own store, medians of so many. */
async function looked(url: string): Promise<Outcome> {
  const store = await Calls.open(url, QUEUE)
  const id = await store.someId()
  const outcome: Outcome = {}
  for (const what of LOOKS) {
    const times: number[] = []
    for (let i = 0; i < LOOKED; i++) times.push(await store.look(what, id))
    outcome[what] = median(times)
  }
  await store.close()
  return outcome
}

async function tidy(url: string): Promise<void> {
  if (!url.startsWith('postgres')) return
  const client = new pg.Client(url)
  await client.connect()
  await client.query('vacuum (analyze)')
  await client.query('checkpoint')
  await client.end()
}
