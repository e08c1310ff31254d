/**
 * The operations, as contract/sqlite/ has them. Each runs inside a transaction that someone else begins and ends;
 * `queues.write()` must run before its commit.
 */
import { cancel } from './cancel.ts'
import { claim } from './claim.ts'
import { configure, limitGroup, settings } from './configure.ts'
import { complete, fail, release } from './end.ts'
import { extend } from './extend.ts'
import { ahead, find } from './find.ts'
import { groups, list } from './list.ts'
import { push } from './push.ts'
import { remove } from './remove.ts'
import { requeue } from './requeue.ts'
import { restore } from './restore.ts'
import { record, stats } from './stats.ts'
import { sweep } from './sweep.ts'
import { update } from './update.ts'
import { heartbeat, workers } from './workers.ts'

export const OPERATIONS = {
  ...{ configure, limitGroup, settings },
  ...{ push, claim, complete, fail, release, extend, sweep },
  ...{ cancel, update, requeue, remove, restore },
  ...{ find, list, groups, ahead },
  ...{ stats, record, heartbeat, workers },
}
export type ThreadOperations = typeof OPERATIONS

/**
 * Those that write nothing, or only where there is something to claim or to sweep. Idle workers claim and sweep all the time: by themselves,
 * these take no lock before they write, and wait for nobody. Heartbeats never wait for the lock.
 */
export const READING: ReadonlySet<string> = new Set([
  ...['ahead', 'claim', 'find', 'groups', 'heartbeat', 'list', 'settings', 'stats', 'sweep', 'workers'],
])

/**
 * Those that a power cut may undo: then every worker on the machine is gone, too, and the job is claimed, or swept, anew.
 * They are answered before the commit is on the disk.
 */
export const REPEATABLE: ReadonlySet<string> = new Set(['claim', 'release', 'extend', 'sweep', 'record', 'heartbeat'])
