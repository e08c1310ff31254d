/** Graphs as they travel in `push_graph_list`: what jobs have in common once, links as pairs of numbers. */
import type { NewJob } from '../../values/jobs/records.ts'
import { isAlike } from '../jobs.ts'
import { plainArray, tagged, textArray } from './wire.ts'

/** @returns undefined: `push_graph` is to store them, as one has a key or `partOf`, or an id that may be known */
export function graphValues(jobs: readonly NewJob[]): unknown[] | undefined {
  const isPlain = ({ fresh, key, once, partOf }: NewJob) =>
    fresh === true && key === null && once === undefined && (partOf ?? null) === null
  if (!jobs.every(isPlain)) return undefined
  const kinds = new Map<string, number>()
  let last: NewJob | undefined
  let nth = 0
  const kindOf = jobs.map((job) => {
    if (last !== undefined && isAlike(job, last) && job.onDead === last.onDead) return nth
    const kind = kindText(job)
    nth = kinds.get(kind) ?? kinds.size + 1
    kinds.set(kind, nth)
    last = job
    return nth
  })
  const numbers = new Map(jobs.map(({ id }, at) => [id, at + 1]))
  const inner = { children: [] as number[], parents: [] as number[] }
  const outer = { children: [] as number[], parents: [] as string[] }
  for (const [at, { after = [] }] of jobs.entries()) {
    for (const parent of new Set(after)) {
      const nth = numbers.get(parent)
      // What comes later is not known yet.
      if (nth === undefined || nth > at) {
        outer.children.push(at + 1)
        outer.parents.push(parent)
      } else {
        inner.children.push(at + 1)
        inner.parents.push(nth)
      }
    }
  }
  return [
    ...[`[${[...kinds.keys()].join(',')}]`, plainArray(kindOf)],
    ...[plainArray(jobs.map(({ id }) => id)), textArray(jobs.map(({ data }) => tagged(data)))],
    ...[plainArray(inner.children), plainArray(inner.parents)],
    ...[plainArray(outer.children), plainArray(outer.parents)],
  ]
}

function kindText(job: NewJob): string {
  const { queue, priority, delay, runAt, group, cost = 1, attempts, timeout, trace, onDead = 'cancel' } = job
  return JSON.stringify({ queue, priority, delay, runAt, group, cost, attempts, timeout, trace, onDead })
}
