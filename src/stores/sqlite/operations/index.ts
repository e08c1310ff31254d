/**
 * The operations on jobs, as contract/sqlite/ has them. Each runs inside a transaction that someone else begins and ends;
 * `queues.write()` must run before its commit.
 */
import { cancel } from './cancel.ts'
import { claim } from './claim.ts'
import { configure, limitGroup, settings } from './configure.ts'
import { complete, fail, release } from './end.ts'
import { extend } from './extend.ts'
import { ahead, find, groups, list } from './find.ts'
import { push } from './push.ts'
import { requeue } from './requeue.ts'
import { noteClaims, record, stats } from './stats.ts'
import { sweep } from './sweep.ts'

export const OPERATIONS = {
  ...{ ahead, cancel, claim, complete, configure, extend, fail, find, groups, limitGroup, list, push, record, release },
  ...{ noteClaims, requeue, settings, stats, sweep },
}
export type Operations = typeof OPERATIONS

/**
 * Those that write nothing, or only where there is something to claim or to sweep. Idle workers claim and sweep all the time: by themselves,
 * these take no lock before they write, and wait for nobody. Notes of claims never wait for the lock.
 */
export const READING: ReadonlySet<string> = new Set([
  'ahead',
  'claim',
  'find',
  'groups',
  'list',
  'noteClaims',
  'settings',
  'stats',
  'sweep',
])

/**
 * Those that a power cut may undo: then every worker on the machine is gone, too, and the job is claimed, or swept, anew.
 * They are answered before the commit is on the disk.
 */
export const REPEATABLE: ReadonlySet<string> = new Set(['claim', 'release', 'extend', 'sweep', 'record', 'noteClaims'])
