/**
 * The operations on jobs, as contract/sqlite/ has them. Each runs inside a transaction that someone else begins and ends;
 * `queues.write()` must run before its commit.
 */
import { cancel } from './cancel.ts'
import { claim, claimNothing } from './claim.ts'
import { configure, limitGroup } from './configure.ts'
import { complete, fail, release } from './end.ts'
import { extend } from './extend.ts'
import { ahead, find, groups, list } from './find.ts'
import { push } from './push.ts'
import { requeue } from './requeue.ts'
import { record, stats } from './stats.ts'
import { sweep, sweepNothing } from './sweep.ts'

export const OPERATIONS = {
  ...{ ahead, cancel, claim, complete, configure, extend, fail, find, groups, limitGroup, list, push, record, release },
  ...{ requeue, stats, sweep },
}
export type Operations = typeof OPERATIONS

/**
 * Those that may need no write, and then take no lock and wait for nobody; undefined: it has to write. Idle workers claim
 * and sweep all the time, so these write only where there is something to claim or to sweep.
 */
export const READING = { ahead, find, groups, list, stats, claim: claimNothing, sweep: sweepNothing }

/**
 * Those that a power cut may undo: then every worker on the machine is gone, too, and the job is claimed, or swept, anew.
 * They are answered before the commit is on the disk.
 */
export const REPEATABLE: ReadonlySet<string> = new Set(['claim', 'release', 'extend', 'sweep', 'record'])
