/**
 * One change to all jobs of a state that pass a filter: those in the durable store first, since jobs come from there to memory meanwhile.
 * A cursor holds where the step ended: one of `PARTS`, and the fields of its own cursor.
 */

import { cursorFields, cursorOf } from '../../values/operations/cursor.ts'
import type { BulkRequest, BulkStep } from '../../values/operations/requests.ts'
import { MOST_SAMPLED } from '../bulk.ts'
import { changing } from './changes.ts'
import { frontOf } from './names.ts'
import type { Spill } from './spill.ts'

type Next = (input: BulkRequest) => Promise<BulkStep>

/** The front of the queue in the durable store, the rest of it there, memory. */
const PARTS = ['front', 'rest', 'memory'] as const
const MEMORY = 2
/** Before the first job. */
const BEGIN = 'b'

export async function bulk(spill: Spill, request: BulkRequest, next: Next): Promise<BulkStep> {
  const { queue, state, after, ...rest } = request
  // What runs in the durable store is on its way back.
  const first = spill.queues.has(queue) && state !== 'running' ? 0 : MEMORY
  const [part = first, ...fields] = (after === undefined ? undefined : cursorFields(state, after)) ?? []
  let own = fields.length === 0 || fields[0] === BEGIN ? {} : { after: cursorOf(state, ...fields) }
  const all: BulkStep = { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: 0 }
  for (let index = Math.min(MEMORY, Number(part)); index <= MEMORY; index++) {
    const limit = Math.max(0, rest.limit - all.matched)
    // Nothing is left of the limit: the next step begins here.
    if (rest.limit > 0 && limit === 0) return { ...all, next: cursorOf(state, index, BEGIN) }
    const asked = { ...rest, ...own, queue, state, limit }
    const step = await (index === MEMORY ? next(asked) : inDurable(spill, asked, PARTS[index] === 'front'))
    add(all, step)
    if (step.next !== null) return { ...all, next: cursorOf(state, index, ...(cursorFields(state, step.next) ?? [])) }
    own = {}
  }
  return all
}

function add(all: BulkStep, { looked, matched, changed, sample, now }: BulkStep): void {
  all.looked += looked
  all.matched += matched
  all.changed += changed
  all.sample.push(...sample.slice(0, MOST_SAMPLED - all.sample.length))
  if (all.now === 0) all.now = now
}

function inDurable(spill: Spill, request: BulkRequest, isFront: boolean): Promise<BulkStep> {
  const { operations } = spill.stores.durable
  const front = frontOf(request.queue)
  const call = () => operations.bulk(isFront ? { ...request, queue: front } : request)
  return request.limit === 0 ? spill.stores.exclusion.change(call) : changing(spill, call)
}
