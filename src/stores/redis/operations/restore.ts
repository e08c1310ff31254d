/** Puts jobs back as they were, each into the partition that a push would take. */
import type { Input } from '../../../store.ts'
import { storedUnique } from '../../../values/jobs/once.ts'
import type { JobRecord } from '../../../values/jobs/records.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import { awaitLinks, linkArrived, linkKnown } from '../awaited.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { linkBytes } from '../links.ts'
import type { Partition } from '../partition.ts'
import { answered, askEach } from '../per-partition.ts'
import { homeOf, isPlaceable, notPlaceable } from '../pusher.ts'
import { encodedBytes, encodedOrNothing, errorBytes, idBytes, idsBytes, pack } from '../wire.ts'
import { confirmListed, restoreSettings } from './configure.ts'

const RESTORED = 0

export async function restore(context: StoreContext, { records }: Input<'restore'>): Promise<RestoreOutcome[]> {
  context.calls.assertOpen()
  const outcomes = await askEach(
    records,
    ({ queue }) => queue,
    (queue, own) => restoreTo(context, queue, own),
  )
  return answered(outcomes).map((outcome) => outcome ?? 'existing')
}

/** As `push` does it: contract/redis/README.md, "push". */
async function restoreTo(
  context: StoreContext,
  queue: string,
  records: readonly JobRecord[],
  registered?: { partitions: readonly Partition[]; floor: number },
): Promise<RestoreOutcome[]> {
  const { queues } = context
  const known = registered === undefined ? queues.known(queue) : undefined
  const { partitions, floor } = known
    ? { partitions: known, floor: null }
    : (registered ?? (await queues.create(queue)))
  for (const record of records) if (!isPlaceable(partitions, record)) throw notPlaceable(queue, record.id)
  const outcomes = await askEach(
    records,
    (record) => homeOf(partitions, record),
    async (partition, own) =>
      (await restoreIn(context, partition, own, floor)) ??
      (await restoreTo(context, queue, own, await queues.create(queue))),
  )
  return answered(outcomes).map((outcome) => outcome ?? 'existing')
}

/** @returns null where nothing was stored, since the partition is not listed */
async function restoreIn(
  context: StoreContext,
  partition: Partition,
  records: readonly JobRecord[],
  floor: number | null,
): Promise<RestoreOutcome[] | null> {
  const links = records.flatMap((record) => linksOf(partition, record))
  if (links.length > 0) await awaitLinks(context, links)
  const [listed, ...answers] = await callScript(context, 'restore', partition, {
    head: [floor, partition.count],
    items: records.flatMap(argsOf),
    safe: true,
  })
  if (listed !== 1) restoreSettings(context, partition.queue)
  if (listed === undefined) return null
  if (listed !== 1) await confirmListed(context, partition)
  context.locations.remember(partition, idsBytes(records))
  context.notifier.local.ring('work', partition.queue)
  if (links.length > 0) await linkKnown(context, links)
  await linkArrived(
    context,
    records.map(({ id }) => id),
  )
  return answers.map((answer) => (answer === RESTORED ? 'restored' : 'existing'))
}

/** A blocked job waits for all of these, until it is found that one has ended. */
const linksOf = ({ part }: Partition, { id, state, after = [] }: JobRecord): Buffer[] =>
  state === 'blocked' ? [...new Set(after)].map((parent) => linkBytes(idBytes(parent), idBytes(id), part)) : []

/** As `restore.lua` takes a job. */
function argsOf(record: JobRecord): (string | Buffer)[] {
  const { id, state, fence, attempt, dueAt, startedAt, finishedAt, worker, pushedAt, priority, attempts } = record
  const { group, timeout, key, trace, cost, data, result, progress, error, log, unique, follows, after, onDead } =
    record
  const kept = [state, fence, attempt, dueAt, startedAt ?? 0, finishedAt ?? 0, worker, pushedAt, priority, attempts]
  const list = [...kept, group, timeout, key, trace, cost, storedUnique(unique), follows, onDead === 'run'].map(
    (value) => value ?? false,
  )
  const optional = [
    encodedOrNothing(result),
    encodedOrNothing(progress),
    error === null ? '' : errorBytes(error),
    log?.join('\n') ?? '',
    idBytes([...new Set(after)].join('')),
  ]
  return [idBytes(id), pack(list), encodedBytes(data), ...optional]
}
