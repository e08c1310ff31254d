import type { Input } from '../../../store.ts'
import type { Heartbeat, WorkerRecord } from '../../../values/operations/requests.ts'
import { integer, text } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'

export function heartbeat({ statements, queues, now }: StoreContext, { workers: told, gone }: Heartbeat): boolean[] {
  // What this transaction has pushed before is known to the statements only then.
  queues.write()
  for (const id of gone) statements.run('workers/gone', { id })
  return told.map(({ id, queue, host, pid, slots, busy, lanes: given }) => {
    const lanes = given == null ? null : JSON.stringify(given)
    statements.run('workers/beat', { id, queue, host, pid, slots, busy, lanes, now })
    return statements.run('workers/heard', { queue, now }) === 1
  })
}

export function workers(
  { statements, now }: StoreContext,
  { queue = null }: { queue?: Input<'workers'>['queue'] | null },
): WorkerRecord[] {
  return statements.all('workers/list', { queue, now }).map((row) => ({
    ...{ id: text(row.id), queue: text(row.queue), host: text(row.host), pid: integer(row.pid) },
    ...{ slots: integer(row.slots), busy: integer(row.busy), since: integer(row.since), seen: integer(row.seen) },
    ...{ silence: integer(row.silence), lanes: row.lanes === null ? null : JSON.parse(text(row.lanes)) },
  }))
}
