/** Random acyclic graphs that follow from a seed alone, so that each process and the test know them, and how each of their jobs must end. */
import { createHash } from 'node:crypto'
import type { FinalState, NewJob, OnDead } from '../../src/values/jobs/records.ts'
import { seeded } from './harness.ts'

export const QUEUES = ['orders', 'mails', 'reports']
/** Jobs of a graph, at most. */
const MOST = 400
const PARENTS = 4

export interface GraphJob {
  id: string
  queue: string
  parents: readonly string[]
  onDead: OnDead
  /** Its handler fails for good. */
  fails: boolean
}

function idOf(seed: number, graph: number, at: number): string {
  const hex = createHash('sha256').update(`${seed} ${graph} ${at}`).digest('hex')
  return `019b76da-a800-7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`
}

/** Parents come before their children. */
export function randomGraph(seed: number, graph: number): GraphJob[] {
  const random = seeded(seed + graph)
  const upTo = (count: number) => Math.floor(random() * count)
  const jobs: GraphJob[] = []
  const count = 1 + upTo(MOST)
  for (let at = 0; at < count; at++) {
    // Now and then one that waits for very many.
    const wanted = upTo(50) === 0 ? upTo(at) : upTo(PARENTS)
    const places = new Set(Array.from({ length: at === 0 ? 0 : wanted }, () => upTo(at)))
    jobs.push({
      id: idOf(seed, graph, at),
      queue: QUEUES[upTo(QUEUES.length)] ?? '',
      parents: [...places].flatMap((place) => jobs[place]?.id ?? []),
      onDead: upTo(3) === 0 ? 'run' : 'cancel',
      fails: upTo(60) === 0,
    })
  }
  return jobs
}

/** As many graphs as have `count` jobs or more. */
export function randomGraphs(seed: number, count: number): GraphJob[][] {
  const graphs: GraphJob[][] = []
  for (let jobs = 0; jobs < count; jobs += graphs.at(-1)?.length ?? 0) graphs.push(randomGraph(seed, graphs.length))
  return graphs
}

export const newJobOf = ({ id, queue, parents, onDead, fails }: GraphJob): NewJob => ({
  ...{ id, queue, priority: 4, delay: 0, runAt: null, key: null, group: null, attempts: 100, timeout: null },
  ...{ trace: null, after: parents, onDead, data: { encoding: 'json', body: String(fails) } },
})

/** How each must end, by id. */
export function endsOf(jobs: readonly GraphJob[]): Map<string, FinalState> {
  const ends = new Map<string, FinalState>()
  for (const { id, parents, onDead, fails } of jobs) {
    const isOrphaned = onDead === 'cancel' && parents.some((parent) => ends.get(parent) !== 'done')
    ends.set(id, isOrphaned ? 'cancelled' : fails ? 'dead' : 'done')
  }
  return ends
}
