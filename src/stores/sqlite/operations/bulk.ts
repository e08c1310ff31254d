/** One change to all jobs of a state that pass a filter, a step at a time. */

import { cursorNumbers, cursorOf } from '../../../values/operations/cursor.ts'
import type { BulkRequest, BulkStep } from '../../../values/operations/requests.ts'
import { changeAll, isDueForChange, MOST_SAMPLED } from '../../bulk.ts'
import { integer, integerOrNull, text } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'
import { cancel } from './cancel.ts'
import { FIRST, isInLines, LOOK_OF_LINES, looksAt, MOST_BYTES, type Place, placesAfter } from './list.ts'
import { remove } from './remove.ts'
import { requeue } from './requeue.ts'
import { update } from './update.ts'

/** Jobs that a step looks at, and a statement: other calls wait for the step. */
const MOST_LOOKED_AT = 5000
const LOOK = 500

export function bulk(context: StoreContext, request: BulkRequest): BulkStep {
  const { state, change, limit, after } = request
  const { now } = context
  const [key = FIRST[state], seq = -1] = cursorNumbers(state, after, [FIRST[state], -1])
  let place: Place | null = { key, seq }
  const ids: string[] = []
  let looked = 0
  let matched = 0
  let bytes = 0
  const isOfLines = isInLines(context, request)
  const look = isOfLines ? LOOK_OF_LINES : LOOK
  const most = isOfLines ? LOOK_OF_LINES : MOST_LOOKED_AT
  while (place !== null && looked < most && bytes < MOST_BYTES && !(limit > 0 && matched >= limit)) {
    const places = placesAfter(context, request, place, look)
    const seen = passing(context, request, places)
    bytes += seen.bytes
    place = places.length < look ? null : (places.at(-1) ?? null)
    for (const [at, each] of places.entries()) {
      looked++
      const id = seen.ids.get(each.seq)
      if (id === undefined) continue
      matched++
      if (limit > 0 || matched <= MOST_SAMPLED) ids.push(id)
      if (limit === 0 || matched < limit) continue
      if (at < places.length - 1) place = each
      break
    }
  }
  const byId = {
    requeue: (input: { ids: readonly string[] }) => requeue(context, input),
    cancel: (input: { ids: readonly string[] }) => cancel(context, input),
    remove: (input: { ids: readonly string[] }) => remove(context, input),
    update: (input: Parameters<typeof update>[1]) => update(context, input),
  }
  const changed = limit === 0 ? 0 : changeAll(change, ids, byId)
  const next = place === null ? null : cursorOf(state, place.key, place.seq)
  return { looked, matched, changed, sample: limit === 0 ? ids : [], next, now }
}

/** The ids of those that the step may change, by their places, and how much data was looked at. */
function passing(
  context: StoreContext,
  request: BulkRequest,
  places: readonly Place[],
): { ids: Map<number, string>; bytes: number } {
  const looks = request.filter === undefined ? null : [...looksAt(context, places, request.filter)]
  const seqs = looks?.flatMap(([seq, { matches }]) => (matches ? [seq] : [])) ?? places.map(({ seq }) => seq)
  const rows = seqs.length === 0 ? [] : context.statements.all('bulk/look', { seqs: JSON.stringify(seqs) })
  const ids = new Map<number, string>()
  for (const row of rows) {
    const job = {
      ...{ state: request.state, priority: integer(row.priority), pushedAt: integer(row.pushed_at) },
      ...{ dueAt: integer(row.due_at), startedAt: integerOrNull(row.started_at) },
      finishedAt: integerOrNull(row.finished_at),
    }
    if (isDueForChange(job, request, context.now)) ids.set(integer(row.seq), text(row.id))
  }
  return { ids, bytes: looks?.reduce((sum, [, look]) => sum + look.bytes, 0) ?? 0 }
}
