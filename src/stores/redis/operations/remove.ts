/** Jobs that go as if they had never been pushed, and queues that go with all they have. */
import { randomUUID } from 'node:crypto'
import type { Input } from '../../../store.ts'
import { JOB_STATES, type JobState } from '../../../values/jobs/records.ts'
import type { Removed, RemoveQueueRequest } from '../../../values/operations/requests.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { askOwners } from '../owners.ts'
import type { Partition } from '../partition.ts'
import { MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { idBytes, numberIn, textIn } from '../wire.ts'

/** What the script answers of a job that was not finished. */
const WAITED = 2
const RAN = 3
/** What `drop.lua` answers where it only looks. */
const NOTHING = 1
const SETTINGS = 3

export async function remove(context: StoreContext, request: Input<'remove'>): Promise<Removed> {
  context.calls.assertOpen()
  return 'ids' in request ? removeIds(context, request.ids) : removeOf(context, request)
}

async function removeIds(context: StoreContext, ids: readonly string[]): Promise<Removed> {
  const { local } = context.notifier
  const outcomes = await askOwners<boolean>(context, [...new Set(ids)], async (partition, own) => {
    const answers = await callScript(context, 'remove', partition, { items: own.map(idBytes), safe: true })
    for (const [at, answer] of answers.entries()) {
      if (answer === WAITED || answer === RAN) {
        local.ring('cancelled', partition.queue, own[at])
        local.ring('finished', partition.queue, own[at])
        local.ring('room', partition.queue)
      }
    }
    return answers.map((answer) => (answer === 0 ? null : true))
  })
  return { removed: outcomes.filter((outcome) => outcome !== null).length, more: false }
}

async function removeOf(context: StoreContext, { queue, state, limit }: RemoveQueueRequest): Promise<Removed> {
  const listed = await context.queues.listed(queue)
  let removed = 0
  for (const each of state === undefined ? JOB_STATES : [state]) {
    for (const partition of listed ?? (await context.queues.look(queue)))
      removed += await removeIn(context, partition, each, limit - removed)
    if (removed >= limit) return { removed, more: true }
  }
  const isOver = state !== undefined || listed === undefined || (await removeQueue(context, queue, listed))
  return { removed, more: !isOver }
}

async function removeIn(context: StoreContext, partition: Partition, state: JobState, limit: number): Promise<number> {
  const { local } = context.notifier
  let removed = 0
  while (removed < limit) {
    const head = [state, Math.min(limit - removed, MAX_ITEMS_PER_CALL)]
    const answers = await callScript(context, 'remove', partition, { head, safe: true })
    if (answers.length === 0) break
    removed += answers.length
    if (answers[0] === WAITED) local.ring('room', partition.queue)
    if (answers[0] === WAITED || answers[0] === RAN) {
      local.ring('cancelled', partition.queue)
      local.ring('finished', partition.queue)
    }
  }
  return removed
}

/**
 * Of a queue without jobs: by the steps of contract/redis/unregister.lua.
 * @returns false: it has jobs again, or settings that were given meanwhile are torn. Where somebody makes it anew meanwhile, it is a new
 * queue, and stays
 */
async function removeQueue(context: StoreContext, queue: string, partitions: readonly Partition[]): Promise<boolean> {
  const { queues } = context
  const token = randomUUID()
  const drop = (floor: number | null) =>
    Promise.all(partitions.map((partition) => callScript(context, 'drop', partition, { head: [floor], safe: true })))
  for (let least = 0; ; ) {
    const floor = await queues.markRemoval(queue, partitions.length, token, least)
    if (floor === undefined) return true
    const outcomes = await drop(floor)
    least = Math.max(0, ...outcomes.map(([, needed]) => (needed === undefined ? 0 : Number(textIn(needed)))))
    if (outcomes.some(([outcome]) => numberIn(outcome) === 0)) {
      await queues.endRemoval(queue, partitions.length, token, false)
      return false
    }
    if (least === 0) break
  }
  context.settings.delete(queue)
  await queues.markRemoval(queue, partitions.length, token, 0)
  const left = (await drop(null)).map(([outcome]) => numberIn(outcome))
  await queues.endRemoval(
    queue,
    partitions.length,
    token,
    left.every((outcome) => outcome === NOTHING),
  )
  return !(left.includes(NOTHING) && left.includes(SETTINGS))
}
