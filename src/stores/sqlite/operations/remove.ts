import type { JobState } from '../../../values/jobs/records.ts'
import { JOB_STATES } from '../../../values/jobs/records.ts'
import type { Removed, RemoveRequest } from '../../../values/operations/requests.ts'
import { flag, integer, type Row, stateFrom, text } from '../connection/values.ts'
import { keysOf } from '../once.ts'
import { isLive, type StoreContext } from '../queues.ts'
import { Endings } from '../settle.ts'

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
    removed += removeJobs(context, statements.all('graphs/held_of', { queue, limit: limit - removed }))
    if (removed >= limit) return { removed, more: true }
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
  return statements.all(`remove/${isLive(state) ? state : 'final'}`, { queue, state, limit })
}

/** @returns how many: an id that is there twice counts once */
function removeJobs(context: StoreContext, rows: readonly Row[]): number {
  const { statements, queues } = context
  let removed = 0
  let highest = 0
  const endings = new Endings(context)
  for (const { id = null, queue, fence } of rows) {
    const own = queues.findOrCreate(text(queue))
    const leaveKey = keysOf(context, own, [text(id)])
    endings.look(own, [text(id)])
    const was = statements.get('remove/remove', { id })
    if (was === undefined) continue
    const state = stateFrom(was.state)
    if (flag(was.held)) statements.run('graphs/unhold', { seq: was.seq ?? null })
    else own.remove(state, text(id))
    leaveKey(text(id), false)
    endings.removed(text(id), isLive(state))
    highest = Math.max(highest, integer(fence))
    removed++
  }
  endings.settle()
  if (highest > 0) statements.run('remove/fence', { fence: highest })
  return removed
}
