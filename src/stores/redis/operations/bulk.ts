/** One change to all jobs of a state that pass a filter, a step at a time. */
import type { BulkRequest, BulkStep } from '../../../values/operations/requests.ts'
import { KINDS } from '../../bells.ts'
import { MOST_SAMPLED } from '../../bulk.ts'
import { MAX_CHANGES_PER_CALL, MAX_ITEMS_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, idText, numberIn } from '../wire.ts'
import { afterArgs, cursorText, type Place, placeIn } from './list.ts'

/** Jobs that a step looks at, in several calls of the script. */
const MOST_LOOKED_AT = 5000

export async function bulk(context: StoreContext, request: BulkRequest): Promise<BulkStep> {
  const { queue, state, limit, after } = request
  const step: BulkStep = { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: 0 }
  let last = after === undefined ? undefined : placeIn(state, after)
  do {
    last = await look(context, request, last, step)
  } while (last !== undefined && step.looked < MOST_LOOKED_AT && !(limit > 0 && step.matched >= limit))
  step.next = last === undefined ? null : cursorText(state, last)
  if (step.changed > 0) for (const kind of KINDS) context.notifier.local.ring(kind, queue)
  return step
}

/** @returns where it ended; undefined: at the end */
async function look(
  context: StoreContext,
  { queue, state, change, limit, filter, until }: BulkRequest,
  last: Place | undefined,
  step: BulkStep,
): Promise<Place | undefined> {
  const { priority = null, runAt = null } = change.kind === 'update' ? change : {}
  const most = limit === 0 ? 0 : Math.min(limit - step.matched, MAX_CHANGES_PER_CALL)
  const { head: from, items } = afterArgs(last)
  const head = [state, MAX_ITEMS_PER_CALL, from, filter ?? null, change.kind, most, until ?? null, priority, runAt]
  const answer = await callScript(context, 'bulk', { queue, head, items, safe: limit > 0 })
  const [looked, matched, changed, now, more, ...rest] = answer
  step.looked += numberIn(looked)
  step.matched += numberIn(matched)
  step.changed += numberIn(changed)
  // Of the first call: what comes into the state meanwhile is not taken by the next steps.
  if (step.now === 0) step.now = numberIn(now)
  const goesOn = numberIn(more) === 1
  for (const each of goesOn ? rest.slice(4) : rest) {
    if (step.sample.length < MOST_SAMPLED) step.sample.push(idText(bytesIn(each)))
  }
  if (!goesOn) return undefined
  const [own, place, time, id] = rest
  return { priority: numberIn(own), place: numberIn(place), time: numberIn(time), id: idText(bytesIn(id)) }
}
