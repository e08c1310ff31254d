/** What a person should look at, of one queue. */
import type { QueueStats } from '../store.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import type { Attention, QueueView } from './views.ts'

/** Milliseconds that the oldest job may wait before somebody should look. */
const LATE = 5 * 60_000
/** The share of the capacity from which on a queue is nearly full. */
const NEARLY_FULL = 0.9

/** What happened since the poller began to look, at most ten minutes ago. */
export interface Recent {
  dead: number
  lost: number
}

export function attentionOf(stats: QueueStats, view: QueueView, recent: Recent): Attention[] {
  const { queue, counts, lastClaim, nextStart, groupsAtLimit } = stats
  const found: Attention[] = []
  const add = (level: Attention['level'], kind: Attention['kind'], text: string) =>
    found.push({ queue, kind, level, text })
  const isSilent = counts.running === 0 && (lastClaim === null || lastClaim > DEFAULTS.store.workerSilence)
  if (counts.waiting > 0 && isSilent && !stats.paused) {
    add(
      'alarm',
      'noWorker',
      `${jobs(counts.waiting)} and no worker ${lastClaim === null ? 'has ever asked for any' : 'asks for them'}`,
    )
  }
  const held = counts.waiting + counts.scheduled + counts.blocked
  if (stats.capacity !== null && held >= stats.capacity)
    add('alarm', 'full', `full: ${number(held)} of ${number(stats.capacity)}`)
  else if (stats.capacity !== null && held >= stats.capacity * NEARLY_FULL) {
    add('warning', 'full', `nearly full: ${number(held)} of ${number(stats.capacity)}`)
  }
  if (recent.dead > 0)
    add(
      'alarm',
      'dead',
      `${number(recent.dead)} more ${recent.dead === 1 ? 'job is' : 'jobs are'} dead, ${number(counts.dead)} in all`,
    )
  else if (counts.dead > 0) add('warning', 'dead', `${number(counts.dead)} dead ${counts.dead === 1 ? 'job' : 'jobs'}`)
  if (recent.lost > 0)
    add(
      'warning',
      'lost',
      `${number(recent.lost)} ${recent.lost === 1 ? 'lease' : 'leases'} lost: a worker crashed or hung`,
    )
  if (stats.paused) add('warning', 'paused', counts.waiting > 0 ? `paused, ${jobs(counts.waiting)}` : 'paused')
  if (counts.waiting > 0) found.push(...waitingAttention(stats, view))
  if (groupsAtLimit > 0)
    add('warning', 'groups', `${number(groupsAtLimit)} ${groupsAtLimit === 1 ? 'group is' : 'groups are'} at the limit`)
  if (counts.waiting > 0 && nextStart === null) add('warning', 'limit', `at its limit: ${number(counts.running)} run`)
  else if (counts.waiting > 0 && (nextStart ?? 0) > 0) add('warning', 'limit', 'held back by its rate')
  return found
}

function waitingAttention(
  { queue, paused, oldestWaiting }: QueueStats,
  { slots, needed, busy }: QueueView,
): Attention[] {
  const found: Attention[] = []
  if (needed !== null && slots > 0 && needed > slots && busy >= slots) {
    const text = `${number(needed)} slots would keep up, ${number(slots)} are there`
    found.push({ queue, kind: 'slots', level: 'warning', text })
  }
  if (!paused && oldestWaiting !== null && oldestWaiting > LATE) {
    const text = `the oldest job has waited for ${number(Math.floor(oldestWaiting / 60_000))} minutes`
    found.push({ queue, kind: 'late', level: 'warning', text })
  }
  return found
}

const number = (value: number): string => value.toLocaleString('en-US')
const jobs = (count: number): string => (count === 1 ? '1 job waits' : `${number(count)} jobs wait`)
