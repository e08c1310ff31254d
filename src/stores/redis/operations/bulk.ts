/** One change to all jobs of a state that pass a filter, a step at a time: one partition after another. */

import type { JobState } from '../../../values/jobs/records.ts'
import { cursorFields, cursorOf } from '../../../values/operations/cursor.ts'
import type { BulkRequest, BulkStep } from '../../../values/operations/requests.ts'
import { KINDS } from '../../bells.ts'
import { MOST_SAMPLED } from '../../bulk.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import type { Partition } from '../partition.ts'
import { MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { bytesIn, idBytes, idText, numberIn } from '../wire.ts'

/** Jobs that a step looks at, in several calls of the script. */
const MOST_LOOKED_AT = 5000

/** Where a step ended: in a partition, behind a job of it, or before its first one. */
interface Place {
  partition: number
  job?: { priority: number; place: number; time: number; id: string }
}

export async function bulk(context: StoreContext, request: BulkRequest): Promise<BulkStep> {
  context.calls.assertOpen()
  const { queue, state, limit, after } = request
  const partitions = (await context.queues.listed(queue)) ?? (await context.queues.look(queue))
  const step: BulkStep = { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: 0 }
  let at: Place | undefined = placeIn(request, after)
  while (at !== undefined && step.looked < MOST_LOOKED_AT && !(limit > 0 && step.matched >= limit)) {
    const partition = partitions[at.partition]
    if (partition === undefined) break
    at = await stepIn(context, partition, request, at, step)
    if (at.partition >= partitions.length) at = undefined
  }
  step.next = at === undefined || at.partition >= partitions.length ? null : textOf(state, at)
  if (step.changed > 0) for (const kind of KINDS) context.notifier.local.ring(kind, queue)
  return step
}

async function stepIn(
  context: StoreContext,
  partition: Partition,
  { state, change, limit, filter, until }: BulkRequest,
  { partition: index, job }: Place,
  step: BulkStep,
): Promise<Place> {
  const { priority = null, runAt = null } = change.kind === 'update' ? change : {}
  const most = limit === 0 ? 0 : limit - step.matched
  const after = job === undefined ? null : [true, job.priority, job.place, job.time]
  const head = [state, MAX_ITEMS_PER_CALL, after, filter ?? null, change.kind, most, until ?? null, priority, runAt]
  const items = job === undefined ? [] : [idBytes(job.id)]
  const [looked, matched, changed, now, more, ...rest] = await callScript(context, 'bulk', partition, {
    head,
    items,
    safe: limit > 0,
  })
  step.looked += numberIn(looked)
  step.matched += numberIn(matched)
  step.changed += numberIn(changed)
  // Of the first call: what comes into the state meanwhile is not taken by the next steps.
  if (step.now === 0) step.now = numberIn(now)
  const goesOn = numberIn(more) === 1
  const [own, place, time, id] = rest
  for (const each of goesOn ? rest.slice(4) : rest) {
    if (step.sample.length < MOST_SAMPLED) step.sample.push(idText(bytesIn(each)))
  }
  if (!goesOn) return { partition: index + 1 }
  const last = { priority: numberIn(own), place: numberIn(place), time: numberIn(time), id: idText(bytesIn(id)) }
  return { partition: index, job: last }
}

function placeIn({ state }: BulkRequest, after: string | undefined): Place {
  const [partition = 0, priority, place, time, id] =
    (after === undefined ? undefined : cursorFields(state, after)) ?? []
  if (id === undefined) return { partition: Number(partition) }
  return {
    partition: Number(partition),
    job: { priority: Number(priority), place: Number(place), time: Number(time), id },
  }
}

function textOf(state: JobState, { partition, job }: Place): string {
  if (job === undefined) return cursorOf(state, partition, 0)
  return cursorOf(state, partition, job.priority, job.place, job.time, job.id)
}
