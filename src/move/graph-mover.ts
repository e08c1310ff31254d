/**
 * The graphs of a move. At the source, the removal of a live job would cancel the jobs that wait for it. So they go first:
 *
 *   a job is taken ──► the jobs that wait for it are taken, stored and removed ──► the target stores it ──► removed
 *
 * The target lets a job wait for parents that it does not know yet. A parent that ends at the source comes there when it has ended.
 */
import { MillpondError } from '../values/errors/errors.ts'
import type { JobRecord } from '../values/jobs/records.ts'
import type { Batch, Source, SourceGraph } from './source.ts'
import type { Fate, Left, Target } from './target.ts'

/** How a batch of jobs that others wait for is carried. */
type Carry = (batch: Batch) => Promise<void>

export class GraphMover {
  readonly #source: Source
  readonly #target: Target
  readonly #isMoved: (queue: string) => boolean
  /** Jobs that went before one that they wait for, and so are not to be stored again. */
  readonly #carried = new Set<string>()

  /** @param isMoved whether a queue is one of those to be moved */
  constructor(source: Source, target: Target, isMoved: (queue: string) => boolean) {
    this.#source = source
    this.#target = target
    this.#isMoved = isMoved
  }

  /** Stores the records, once what waits for them is away. @returns per record undefined if it went before */
  async take(records: readonly JobRecord[], carry: Carry): Promise<(Fate | undefined)[]> {
    const { graph } = this.#source
    const staying: ReadonlyMap<string, Left> =
      graph === undefined ? new Map() : await this.#staying(graph, records, carry)
    const sent = records.filter(({ id }) => !this.#carried.has(id) && !staying.has(id))
    const fates = (sent.length === 0 ? [] : await this.#target.take(sent)).values()
    return records.map(({ id }) => {
      if (this.#carried.has(id)) return undefined
      return staying.get(id) ?? fates.next().value
    })
  }

  /** Those that cannot go: they wait for a job that stays, or a job that stays waits for them. */
  async #staying(graph: SourceGraph, records: readonly JobRecord[], carry: Carry): Promise<Map<string, Left>> {
    await this.carryChildren(records, carry)
    const children = await graph.childrenOf(records)
    const staying = new Map<string, Left>()
    const places = await graph.queuesOf([...children.values()].flat())
    for (const { id, queue } of records) {
      const own = children.get(id)
      const isApart = own?.some((child) => this.#target.isApart(queue, places.get(child) ?? queue))
      if (own !== undefined) staying.set(id, isApart ? APART : PARTED)
    }
    const blocked = records.filter(({ state }) => state === 'blocked')
    const queues = await graph.queuesOf(blocked.flatMap(({ after = [] }) => after))
    const isLeft = (id: string) => !this.#isMoved(queues.get(id) ?? '') && queues.has(id)
    for (const { id, queue, after = [] } of blocked) {
      if (after.some(isLeft)) staying.set(id, PARTED)
      if (after.some((parent) => this.#target.isApart(queue, queues.get(parent) ?? queue))) staying.set(id, APART)
    }
    // What is added meanwhile is gone through, too.
    const parents = new Map(blocked.map(({ id, after = [] }) => [id, after]))
    for (const [id, reason] of staying)
      for (const parent of parents.get(id) ?? []) if (!staying.has(parent)) staying.set(parent, reason)
    return staying
  }

  /** What waits for these jobs. */
  async carryChildren(records: readonly JobRecord[], carry: Carry): Promise<void> {
    const { graph } = this.#source
    const children = await graph?.childrenOf(records)
    if (graph === undefined || children === undefined || children.size === 0) return
    const queues = await graph.queuesOf([...new Set([...children.values()].flat())])
    const moved = [...queues].flatMap(([id, queue]) => (this.#isMoved(queue) ? id : []))
    for (const batch of await graph.take(moved)) await carry(batch)
  }

  went({ id }: JobRecord): void {
    this.#carried.add(id)
  }

  /**
   * Parents that neither store knows: they ended at the source and were not kept until they could be moved. By default only done jobs are
   * kept so shortly. So they count as done, and the jobs that wait for them go on.
   * @returns whether there were any
   */
  async endGone(queues: readonly string[]): Promise<boolean> {
    const { graph } = this.#source
    let any = false
    for (const queue of graph === undefined ? [] : queues) {
      const missing = await this.#target.awaited(queue)
      if (graph === undefined || missing.length === 0) continue
      const here = await graph.queuesOf(missing)
      // In this order: a job that is moved meanwhile is at the target before it leaves the source.
      const there = new Set(await this.#target.awaited(queue))
      const gone = missing.filter((id) => !here.has(id) && there.has(id))
      if (gone.length > 0) await this.#target.take(gone.map((id) => goneParent(id, queue)))
      any ||= gone.length > 0
    }
    return any
  }
}

const APART = new MillpondError(
  'AcrossShards',
  'it and a job of its graph would come to different stores of the target',
)
const PARTED = new MillpondError('NotSupported', 'a job of its graph stays at the source')

function goneParent(id: string, queue: string): JobRecord {
  const now = Date.now()
  return {
    ...{ id, queue, state: 'done', priority: 4, attempt: 1, attempts: 1, fence: 0, key: null, group: null, cost: 1 },
    ...{ timeout: null, trace: null, pushedAt: now, dueAt: now, startedAt: null, finishedAt: now, worker: null },
    ...{ data: { encoding: 'json', body: 'null' }, progress: null, result: null, error: null },
  }
}
