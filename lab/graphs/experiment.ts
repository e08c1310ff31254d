/** Graphs: what it takes to store one whole, beside a plain push of as many jobs, and how soon a child starts after the last of its parents. */
import { Millpond } from '../../src/index.ts'
import type { GraphJob } from '../../src/pond/push/push-all.ts'
import { atMost } from '../bars.ts'
import type { Experiment, Row } from '../experiment.ts'
import { some, whole } from '../flags.ts'
import { tell } from '../progress.ts'
import { median } from '../statistics.ts'

/** Most that a whole push may take, of a plain one, and that a child may wait after its last parent, in milliseconds. */
const MOST_TIMES = 2
const MOST_WAIT = 1000
/** Slots of each worker on the parents. */
const SLOTS = 100
/** Children of each job of a tree. */
const BRANCHES = 10

const flags = {
  stores: some(['sqlite-normal', 'redis', 'postgres'] as const),
  jobs: whole('of a graph, 5,000 at most', '5000', '500'),
  ponds: whole('with workers, on the parents of one child', '2', '2'),
  rounds: whole('their median counts', '5', '3'),
}

export const graphs: Experiment<typeof flags> = {
  id: 'graphs',
  flags,
  about: ({ jobs, ponds }) =>
    `Graphs of ${jobs.toLocaleString('en')} jobs; ${ponds} ponds with ${SLOTS} slots each work off the parents of one child.`,
  async *measure({ stores, jobs, ponds, rounds }, stage) {
    for (const name of stores) {
      const place = await stage.place(name)
      const tree: number[] = []
      const star: number[] = []
      const waits: number[] = []
      for (let round = 0; round < rounds; round++) {
        tell(`${name}: round ${round + 1} of ${rounds}`)
        const url = await place.fresh()
        const [plainTime, treeTime, starTime] = await pushed(url, jobs)
        tree.push(treeTime / plainTime)
        star.push(starTime / plainTime)
        waits.push(await fannedIn(await place.fresh(), jobs, ponds))
      }
      const row = (what: string, values: number[], most: number, unit: string): Row => ({
        cells: [what, `${median(values).toFixed(2)}${unit}`, `${Math.max(...values).toFixed(2)}${unit}`],
        bars: [atMost(median(values), most, unit)],
        figures: { what, values },
      })
      yield {
        title: name,
        head: ['', 'median', 'most'],
        rows: [
          row(`pushAll of a tree, ${BRANCHES} children each ÷ pushMany`, tree, MOST_TIMES, ' ×'),
          row('pushAll of one child with all others as parents ÷ pushMany', star, MOST_TIMES, ' ×'),
          row('start of that child after its last parent', waits, MOST_WAIT, ' ms'),
        ],
      }
    }
  },
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** One child, last, of all others. */
const starOf = (pond: Millpond, jobs: number): GraphJob<number>[] => {
  const [parents, child] = [pond.queue<number>('parents'), pond.queue<number>('child')]
  const after = numbers(jobs - 1)
  return [...after.map((n): GraphJob<number> => [parents, n]), [child, jobs - 1, { after }]]
}

/** @returns what it takes to push as many plain jobs, a tree, and a star, in ms */
async function pushed(url: string, jobs: number): Promise<[number, number, number]> {
  const pond = await Millpond.open(url)
  try {
    const queue = pond.queue<number>('plain')
    const [tree, star] = [pond.queue<number>('tree'), starOf(pond, jobs)]
    const branches = numbers(jobs).map(
      (n): GraphJob<number> => [tree, n, n === 0 ? {} : { after: [Math.floor((n - 1) / BRANCHES)] }],
    )
    await queue.pushMany(numbers(jobs))
    await pond.pushAll(branches.slice(0, BRANCHES))
    return [
      await timed(() => queue.pushMany(numbers(jobs))),
      await timed(() => pond.pushAll(branches)),
      await timed(() => pond.pushAll(star)),
    ]
  } finally {
    await pond.close()
  }
}

async function timed(what: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await what()
  return performance.now() - began
}

/** @returns ms from the end of the last parent's handler to the start of its child's */
async function fannedIn(url: string, jobs: number, count: number): Promise<number> {
  const ponds = await Promise.all(numbers(count).map(() => Millpond.open(url)))
  try {
    const [first] = ponds
    if (first === undefined) throw new Error('at least one pond')
    await first.pushAll(starOf(first, jobs))
    let lastEnd = 0
    return await new Promise((resolve, reject) => {
      for (const pond of ponds) {
        pond.on('error', reject)
        pond.queue<number>('child').work(() => resolve(performance.now() - lastEnd))
        pond.queue<number>('parents').work(
          () => {
            lastEnd = performance.now()
          },
          { concurrency: SLOTS },
        )
      }
    })
  } finally {
    await Promise.all(ponds.map((pond) => pond.close()))
  }
}
