/** What a claim takes beside ten thousand groups that may not start a job, at the store's interface. In pairs, in turns. */
import { atMost } from '../../bars.ts'
import { median } from '../../statistics.ts'
import { Calls, newJobs } from '../../store.ts'
import { ms, type Part } from '../part.ts'

const BLOCKED = 10_000
const ROUNDS = 500
const LEASE = 3_600_000

/** So many groups at their limit, and one that is not. */
async function fill(store: Calls, queue: string, blocked: number): Promise<void> {
  const groups = Array.from({ length: blocked }, (_, n) => `blocked-${n}`)
  for (let at = 0; at < blocked; at += 250) {
    // One runs, one waits.
    await store.push(newJobs(queue, [...groups.slice(at, at + 250), ...groups.slice(at, at + 250)]))
  }
  for (let held = 0; held < blocked; ) held += (await store.claim('lab', 1000, LEASE)).length
  await store.push(newJobs(queue, Array(ROUNDS).fill('free')))
}

/** One claim of one job, in ms; the job is completed afterwards. */
async function timed(store: Calls): Promise<number> {
  const from = performance.now()
  const jobs = await store.claim('lab', 1, LEASE)
  const took = performance.now() - from
  if (jobs[0]?.group !== 'free') throw new Error('the group that is not blocked had no turn')
  await store.complete(jobs)
  return took
}

export const blocked: Part = {
  title: `A claim beside ${BLOCKED} blocked groups`,
  head: ['blocked groups', 'claims', 'usual', 'beside them', 'ratio'],
  stores: ['memory', 'sqlite', 'postgres', 'redis'],
  async measure(_, fresh) {
    const usual = await Calls.open(await fresh(), 'usual', 1)
    const beside = await usual.beside('blocked', 1)
    await fill(usual, 'usual', 0)
    await fill(beside, 'blocked', BLOCKED)
    const times = new Map([usual, beside].map((store) => [store, [] as number[]]))
    for (let round = 0; round < ROUNDS; round++) {
      for (const store of round % 2 === 0 ? [usual, beside] : [beside, usual])
        times.get(store)?.push(await timed(store))
    }
    const [before, after] = [median(times.get(usual) ?? []), median(times.get(beside) ?? [])]
    await usual.close()
    const cells = [`${BLOCKED}`, `2 × ${ROUNDS}`, ms(before), ms(after), (after / before).toFixed(2)]
    return [{ cells, bars: [atMost(after / before, 2, ' ×')] }]
  },
}
