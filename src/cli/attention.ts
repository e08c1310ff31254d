/** What somebody should look at in a queue, from its figures alone, and the command that helps. */
import type { Millpond } from '../pond/millpond.ts'
import type { QueueReport } from '../pond/stats.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { counted, grouped, lasting } from './figures.ts'

export interface Attention {
  kind: 'noWorker' | 'workersGone' | 'paused' | 'full' | 'queueLimit' | 'groupLimit' | 'dead'
  queue: string
  text: string
  /** What to do. */
  action: string
}

/** Those that were heard of in the last minute, of all queues; null: the store does not know. */
export type Heard = readonly { queue: string }[] | null

export async function heardIn(pond: Millpond): Promise<Heard> {
  return pond.store.capabilities.workers ? pond.workers() : null
}

export const START_WORKERS = 'start workers of this queue; millpond workers lists those that there are'

/** Jobs run, and nobody is left who runs them; undefined: not so, or not known. Workers that are full claim nothing, but are heard of. */
export function workersGone({ queue, counts, lastClaim }: QueueReport, workers: Heard): string | undefined {
  if (workers === null || counts.running === 0 || workers.some((one) => one.queue === queue)) return undefined
  if (lastClaim !== null && lastClaim <= DEFAULTS.store.workerSilence) return undefined
  const since = lastClaim === null ? 'ever' : `since ${new Date(Date.now() - lastClaim).toISOString()}`
  const theirs = counted(counts.running, 'running job is that', 'running jobs are those')
  const back = counts.running === 1 ? 'it comes back when its lease ends' : 'they come back when their leases end'
  return `no worker was heard of ${since}; ${theirs} of workers that are gone: ${back}`
}

/** What stands first is to be done first. */
export function attentionTo(report: QueueReport, workers: Heard): Attention[] {
  const { queue, counts, paused, capacity, lastClaim, limits, nextStart, groupsAtLimit } = report
  const found: Attention[] = []
  const add = (kind: Attention['kind'], text: string, action: string) => found.push({ kind, queue, text, action })
  const isSilent = lastClaim === null || lastClaim > DEFAULTS.store.workerSilence
  const gone = workersGone(report, workers)
  if (gone !== undefined) {
    // Short, since `top` cuts it.
    const since =
      lastClaim === null ? 'no worker was ever heard of' : `no worker was heard of for ${lasting(lastClaim)}`
    const running = counted(counts.running, 'job runs', 'jobs run')
    add('workersGone', `${running}, but ${since}`, 'start workers; what ran comes back when leases end')
  }
  if (workers !== null && counts.waiting > 0 && counts.running === 0 && isSilent) {
    const asked =
      lastClaim === null ? 'no worker has ever asked for jobs' : `no worker has asked for ${lasting(lastClaim)}`
    add('noWorker', `${counted(counts.waiting, 'job waits', 'jobs wait')}, and ${asked}`, 'start workers')
  }
  if (paused) add('paused', 'it is paused', `millpond resume ${queue}`)
  if (capacity !== null && counts.waiting + counts.scheduled + counts.blocked >= capacity) {
    add('full', `it is full: its capacity is ${grouped(capacity)}`, `millpond limits ${queue} --capacity N`)
  }
  if (counts.waiting > 0 && nextStart === null) {
    const most = limits?.running ?? null
    add(
      'queueLimit',
      `it runs as many jobs as it may${most === null ? '' : `, ${grouped(most)}`}`,
      `millpond limits ${queue} --running N`,
    )
  }
  if (groupsAtLimit > 0) {
    const groups = counted(groupsAtLimit, 'group is at its limit', 'groups are at their limit')
    add('groupLimit', `${groups}, and jobs of ${groupsAtLimit === 1 ? 'it' : 'them'} wait`, `millpond explain ${queue}`)
  }
  if (counts.dead > 0)
    add('dead', counted(counts.dead, 'job is dead', 'jobs are dead'), `millpond jobs ${queue} --state dead`)
  return found
}

/** On one line. */
export const attentionText = ({ queue, text, action }: Attention): string => `${queue}: ${text} → ${action}`
