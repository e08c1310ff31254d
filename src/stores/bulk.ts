/** What the bulk changes of several stores share: which jobs a step changes beside the filter, and by which operation. */

import type { Operations, Output } from '../store.ts'
import type { JobRecord } from '../values/jobs/records.ts'
import type { BulkChange, BulkRequest } from '../values/operations/requests.ts'
import { defined } from '../values/options/options.ts'

/** Of a count, ids that are told. */
export const MOST_SAMPLED = 10

type Looked = Pick<JobRecord, 'state' | 'priority' | 'pushedAt' | 'dueAt' | 'startedAt' | 'finishedAt'>

/** Whether it was in its state at `until`, and is not yet as an update would make it: so no job is changed twice. */
export function isDueForChange(job: Looked, { until, change }: BulkRequest, now: number): boolean {
  if (until !== undefined && !wasThere(job, until)) return false
  if (change.kind !== 'update') return true
  const { priority = job.priority, runAt = job.dueAt } = change
  const isSameTime = job.dueAt === runAt || (job.state === 'waiting' && runAt <= now)
  return job.priority !== priority || !isSameTime
}

function wasThere({ state, pushedAt, dueAt, startedAt, finishedAt }: Looked, until: number): boolean {
  if (finishedAt !== null) return finishedAt < until || (finishedAt === until && dueAt < until)
  if (pushedAt > until) return false
  return startedAt === null || startedAt < until || (state === 'running' && startedAt === until)
}

type ById<Name extends 'requeue' | 'cancel' | 'remove' | 'update'> = (
  input: Name extends 'update' ? Parameters<Operations['update']>[0] : { ids: readonly string[] },
) => Output<Name>

/** The operations that change jobs by their ids, in the transaction of the look. */
export interface ChangesById {
  requeue: ById<'requeue'>
  cancel: ById<'cancel'>
  remove: ById<'remove'>
  update: ById<'update'>
}

/** @returns how many were changed */
export function changeAll(change: BulkChange, ids: readonly string[], changes: ChangesById): number {
  switch (change.kind) {
    case 'requeue':
      return changes.requeue({ ids }).requeued
    case 'cancel':
      return changes.cancel({ ids }).filter((outcome) => outcome === 'cancelled').length
    case 'remove':
      return changes.remove({ ids }).removed
    case 'update': {
      const { priority, runAt } = change
      const items = ids.map((id) => ({ id, ...defined({ priority, runAt }) }))
      return changes.update({ items }).filter((outcome) => outcome === 'updated').length
    }
  }
}
