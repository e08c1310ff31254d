/** What somebody should look at in a queue, from its figures alone, and the command that helps. */
import type { QueueReport } from '../pond/stats.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { counted, grouped, lasting } from './figures.ts'

export interface Attention {
  kind: 'noWorker' | 'paused' | 'full' | 'queueLimit' | 'groupLimit' | 'dead'
  queue: string
  text: string
  /** What to do. */
  action: string
}

/** @param knowsWorkers whether the store knows who claims */
export function attentionTo(report: QueueReport, knowsWorkers: boolean): Attention[] {
  const { queue, counts, paused, capacity, lastClaim, limits, nextStart, groupsAtLimit } = report
  const found: Attention[] = []
  const add = (kind: Attention['kind'], text: string, action: string) => found.push({ kind, queue, text, action })
  const isSilent = lastClaim === null || lastClaim > DEFAULTS.store.workerSilence
  if (knowsWorkers && counts.waiting > 0 && counts.running === 0 && isSilent) {
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
