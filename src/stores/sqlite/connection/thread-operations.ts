/**
 * The operations, as contract/sqlite/ has them. Each runs inside a transaction that someone else begins and ends;
 * `queues.write()` must run before its commit.
 */
import { bulk } from '../operations/bulk.ts'
import { cancel } from '../operations/cancel.ts'
import { claim } from '../operations/claim.ts'
import { configure, limitGroup, settings } from '../operations/configure.ts'
import { complete, fail, release } from '../operations/end.ts'
import { extend } from '../operations/extend.ts'
import { ahead, find, outcomes } from '../operations/find.ts'
import { entries, journal, signal } from '../operations/journal.ts'
import { groups, list } from '../operations/list.ts'
import { push } from '../operations/push.ts'
import { relatives } from '../operations/relatives.ts'
import { remove } from '../operations/remove.ts'
import { requeue } from '../operations/requeue.ts'
import { restore } from '../operations/restore.ts'
import { declare, fire, pauseSchedule, removeSchedule, schedules } from '../operations/schedules.ts'
import { record, stats } from '../operations/stats.ts'
import { sweep } from '../operations/sweep.ts'
import { update } from '../operations/update.ts'
import { heartbeat, workers } from '../operations/workers.ts'

export const OPERATIONS = {
  ...{ configure, limitGroup, settings },
  ...{ push, claim, complete, fail, release, extend, sweep },
  ...{ journal, entries, signal },
  ...{ cancel, update, requeue, remove, bulk, restore },
  ...{ find, outcomes, list, groups, ahead, relatives },
  ...{ stats, record, heartbeat, workers },
  ...{ declare, schedules, pauseSchedule, removeSchedule, fire },
}
export type ThreadOperations = typeof OPERATIONS

/**
 * Those that write nothing, or only where there is something to claim or to sweep. Idle workers claim and sweep all the
 * time: by themselves, these take no lock before they write, and wait for nobody. Heartbeats never wait for the lock.
 */
export const READING: ReadonlySet<string> = new Set([
  ...[
    'ahead',
    'claim',
    'entries',
    'find',
    'groups',
    'heartbeat',
    'list',
    'outcomes',
    'relatives',
    'schedules',
    'settings',
    'stats',
    'sweep',
    'workers',
  ],
])
