import type { JobState, Removed, RemoveRequest } from '../../../store.ts'
import { JOB_STATES } from '../../../store.ts'
import { integer, type Row, stateFrom, text } from '../connection/values.ts'
import { keysOf } from '../once.ts'
import type { StoreContext } from '../queues.ts'

export function remove(context: StoreContext, request: RemoveRequest): Removed {
  const { statements, queues } = context
  if ('ids' in request) {
    const rows = request.ids.flatMap((id) => statements.all('remove/look', { id }))
    return { removed: removeJobs(context, rows), more: false }
  }
  const { queue, state, limit } = request
  let removed = 0
  for (const each of state === undefined ? JOB_STATES : [state]) {
    removed += removeJobs(context, jobsIn(context, queue, each, limit - removed))
    if (removed >= limit) return { removed, more: true }
  }
  if (state === undefined) {
    queues.write()
    if (statements.run('remove/queue', { queue }) > 0) {
      statements.run('remove/removals')
      statements.run('once/forget_all', { queue })
    }
    queues.removed(queue)
  }
  return { removed, more: false }
}

function jobsIn({ statements }: StoreContext, queue: string, state: JobState, limit: number): Row[] {
  const isLive = state === 'waiting' || state === 'scheduled' || state === 'running'
  return statements.all(`remove/${isLive ? state : 'final'}`, { queue, state, limit })
}

/** @returns how many: an id that is there twice counts once */
function removeJobs(context: StoreContext, rows: readonly Row[]): number {
  const { statements, queues } = context
  let removed = 0
  let highest = 0
  for (const { id = null, queue, state, fence } of rows) {
    const own = queues.findOrCreate(text(queue))
    const leaveKey = keysOf(context, own, [text(id)])
    if (statements.run('remove/remove', { id }) === 0) continue
    own.remove(stateFrom(state), text(id))
    leaveKey(text(id), false)
    highest = Math.max(highest, integer(fence))
    removed++
  }
  if (highest > 0) statements.run('remove/fence', { fence: highest })
  return removed
}
