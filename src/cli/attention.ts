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

export function attentionTo(report: QueueReport): Attention[] {
  const { queue, counts, paused, capacity, lastClaim, limits, nextStart, groupsAtLimit } = report
  const found: Attention[] = []
  const add = (kind: Attention['kind'], text: string, action: string) => found.push({ kind, queue, text, action })
  const isSilent = lastClaim === null || lastClaim > DEFAULTS.store.workerSilence
  if (counts.waiting > 0 && counts.running === 0 && isSilent) {
    const since = lastClaim === null ? 'ever' : `for ${lasting(lastClaim)}`
    const what = `${counted(counts.waiting, 'job')} ${counts.waiting === 1 ? 'waits' : 'wait'}`
    add('noWorker', `${what}, and no worker has asked for jobs ${since}`, 'start workers')
  }
  if (paused) add('paused', 'is paused', `millpond resume ${queue}`)
  if (capacity !== null && counts.waiting + counts.scheduled >= capacity) {
    add('full', `is full: its capacity is ${grouped(capacity)}`, `millpond limits ${queue} --capacity N`)
  }
  if (counts.waiting > 0 && nextStart === null) {
    const most = limits?.running ?? null
    const text = `runs as many jobs as it may${most === null ? '' : `, ${grouped(most)}`}`
    add('queueLimit', text, `millpond limits ${queue} --running N`)
  }
  if (groupsAtLimit > 0) {
    const text = `${counted(groupsAtLimit, 'group')} with waiting jobs ${groupsAtLimit === 1 ? 'is at its' : 'are at their'} limit`
    add('groupLimit', text, `millpond limits ${queue}`)
  }
  if (counts.dead > 0) {
    add(
      'dead',
      `${counted(counts.dead, 'job')} ${counts.dead === 1 ? 'is' : 'are'} dead`,
      `millpond jobs ${queue} --state dead`,
    )
  }
  return found
}
