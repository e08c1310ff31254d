/** Puts jobs back as they were. */
import type { Input } from '../../../store.ts'
import { storedUnique } from '../../../values/jobs/once.ts'
import type { JobRecord } from '../../../values/jobs/records.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import { inChunks, MAX_CHANGES_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { encodedBytes, encodedOrNothing, errorBytes, idBytes, pack } from '../wire.ts'
import { restoreSettings } from './configure.ts'
import { entryArgs, sizeOf } from './journal.ts'

const RESTORED = 0

export function restore(context: StoreContext, { records }: Input<'restore'>): Promise<RestoreOutcome[]> {
  return inChunks(
    records,
    async (some) => {
      const entries = some.map(({ entries: own }) => own ?? [])
      const counts = entries.map(({ length }) => length)
      const [made, ...answers] = await callScript(context, 'restore', {
        head: counts.some((count) => count > 0) ? [counts] : [],
        items: [...some.flatMap(argsOf), ...entries.flat().flatMap(entryArgs)],
        safe: true,
      })
      for (const queue of new Set(some.map((record) => record.queue))) {
        if (made === 1) restoreSettings(context, queue)
        context.notifier.local.ring('work', queue)
      }
      return answers.map((answer) => (answer === RESTORED ? 'restored' : 'existing'))
    },
    MAX_CHANGES_PER_CALL,
    ({ entries }) => sizeOf(entries ?? []),
  )
}

/** As `restore.lua` takes a job. */
function argsOf(record: JobRecord): (string | Buffer)[] {
  const { id, queue, state, fence, attempt, dueAt, startedAt, finishedAt, worker, pushedAt, priority, attempts } =
    record
  const {
    group,
    timeout,
    key,
    trace,
    cost,
    data,
    result,
    progress,
    error,
    log,
    unique,
    follows,
    after,
    onDead,
    parked,
  } = record
  const kept = [
    queue,
    state,
    fence,
    attempt,
    dueAt,
    startedAt ?? 0,
    finishedAt ?? 0,
    worker,
    pushedAt,
    priority,
    attempts,
  ]
  const list = [...kept, group, timeout, key, trace, cost, storedUnique(unique), follows, onDead === 'run', parked].map(
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
