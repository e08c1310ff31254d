/** Walks a graph of jobs, level by level, from one of them. */

import type { Store } from '../store.ts'
import { JOB_STATES, type JobState, type OnDead } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import type { Relatives } from '../values/operations/requests.ts'
import { checkOptions, isInteger } from '../values/options/options.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { MAX_PARENTS } from './push/links.ts'

/** A job in its graph. */
export interface GraphNode {
  id: string
  queue: string
  state: JobState
  /** Of a blocked job: what it becomes when a parent dies. Of others it may be `cancel` whatever they were pushed with. */
  onDead: OnDead
  /** The jobs that it waits or waited for, by id. Those that are gone may be missing. */
  parents: string[]
  /** The jobs that wait or waited for it, by id. */
  children: string[]
}

/** Jobs that are connected by waiting for each other. */
export interface Graph {
  /** The job that was asked for first, then those next to it, and so on. */
  nodes: GraphNode[]
  /** How many of the nodes are in each state. */
  counts: Record<JobState, number>
  /** How many of them have not ended. */
  left: number
  /** There are jobs beyond the limit. */
  more: boolean
}

export interface GraphOptions {
  /** Most jobs that are looked at; 1 to 100,000, 1,000 unless set. */
  limit?: number | undefined
}

/** Relatives that are told in all, beside so many for each job of the limit: those of a dense graph would fill the memory. */
const MANY_RELATIVES = 2 * MAX_PARENTS
const RELATIVES_PER_JOB = 20
/** Jobs asked for in a call, and relatives of each; more of them are asked for one by one. */
const JOBS_PER_CALL = 200
const FEW_RELATIVES = 100
const RULES = { limit: isInteger(1, DEFAULTS.graph.shown) }

/** @returns undefined: the store does not know the job @throws InvalidOption, NotSupported, `Store…` */
export async function graphOf(store: Store, id: string, options: GraphOptions): Promise<Graph | undefined> {
  const { limit = 1000 } = checkOptions(options, RULES, 'graph')
  needs(store, 'graphs', 'graph')
  const nodes: GraphNode[] = []
  const seen = new Set([id])
  let more = false
  let room = MANY_RELATIVES + RELATIVES_PER_JOB * limit
  for (let level = [id]; level.length > 0; ) {
    const next: string[] = []
    for await (const [id, relatives] of relativesOf(store, level)) {
      // A job may go while the graph is walked.
      if (relatives === null) continue
      room -= relatives.parents.length + relatives.children.length
      more ||= room < 0
      if (room < 0) break
      const { more: isCut, gone: _, ...node } = relatives
      nodes.push({ id, ...node })
      more ||= isCut
      for (const other of [...node.parents, ...node.children]) {
        if (seen.has(other)) continue
        if (seen.size < limit) {
          seen.add(other)
          next.push(other)
        } else more = true
      }
    }
    level = room < 0 ? [] : next
  }
  if (nodes.length === 0) return undefined
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>
  for (const { state } of nodes) counts[state]++
  return { nodes, counts, left: counts.blocked + counts.scheduled + counts.waiting + counts.running, more }
}

async function* relativesOf({ operations }: Store, ids: readonly string[]): AsyncGenerator<[string, Relatives | null]> {
  for (let from = 0; from < ids.length; from += JOBS_PER_CALL) {
    const some = ids.slice(from, from + JOBS_PER_CALL)
    const found = await operations.relatives({ ids: some, limit: FEW_RELATIVES })
    for (const [at, one] of found.entries()) {
      const id = some[at] ?? ''
      if (!one?.more) yield [id, one]
      else yield [id, (await operations.relatives({ ids: [id], limit: MAX_PARENTS }))[0] ?? null]
    }
  }
}
