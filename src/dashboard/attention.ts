/** What a person should look at, of one queue. */
import type { QueueStats } from '../values/operations/requests.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
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
  const { queue, counts } = stats
  const found: Attention[] = []
  const add = (level: Attention['level'], kind: Attention['kind'], text: string) =>
    found.push({ queue, kind, level, text })
  const noWorker = noWorkerText(stats)
  if (noWorker !== undefined) add('alarm', 'noWorker', noWorker)
  if (view.silent !== null)
    add('warning', 'silent', `${view.silent}: perhaps killed; what runs there comes back when its lease ends`)
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
  found.push(...heldAttention(stats))
  return found
}

/** What its limits and rates hold back, and where on the page they are raised. */
function heldAttention({ queue, counts, limits, nextStart, groupsAtLimit }: QueueStats): Attention[] {
  const found: Attention[] = []
  const add = (kind: Attention['kind'], text: string) => found.push({ queue, kind, level: 'warning', text })
  if (groupsAtLimit > 0) {
    const text = `${number(groupsAtLimit)} ${groupsAtLimit === 1 ? 'group is' : 'groups are'} at the limit`
    const all = limits?.groupRunning == null ? '' : ', “Running at once, each group” under Settings for all'
    add('groups', `${text}: “Limits …” under Groups raises it for one${all}`)
  }
  if (counts.waiting > 0 && nextStart === null) {
    add('limit', `at its limit: ${number(counts.running)} run; “Running at once” under Settings raises it`)
  } else if (counts.waiting > 0 && (nextStart ?? 0) > 0) {
    if (limits?.rate == null) add('limit', 'held back by a pause that a handler asked for; it ends by itself')
    else add('limit', 'held back by its rate; “Rate of starts” under Settings raises it')
  }
  return found
}

/** undefined: there is one, nobody is needed, or it cannot be told: jobs run, and nobody was ever heard of. */
function noWorkerText({ counts: { waiting, running }, lastClaim, paused }: QueueStats): string | undefined {
  const isNeeded = running > 0 || (waiting > 0 && !paused)
  if (!isNeeded) return undefined
  if (lastClaim === null) return running > 0 ? undefined : `no worker has ever asked for jobs, ${jobs(waiting)}`
  if (lastClaim <= DEFAULTS.store.workerSilence) return undefined
  const since = `no worker since ${minutes(lastClaim)} ago`
  const told = [since, ...(waiting > 0 ? [jobs(waiting)] : [])].join(', ')
  if (running === 0) return told
  return `${told}; ${running === 1 ? 'the one that runs is' : `the ${number(running)} that run are`} of workers that are gone`
}

function waitingAttention(
  { queue, paused, oldestWaiting, nextStart }: QueueStats,
  { slots, needed, busy, arrivals, completions }: QueueView,
): Attention[] {
  const found: Attention[] = []
  const isBusy = slots > 0 && busy >= slots
  const isShort = needed !== null && needed > slots
  const grows = arrivals !== null && completions !== null && arrivals > completions
  if (isBusy && !paused && (isShort || (grows && nextStart === 0))) {
    const all = slots === 1 ? 'the only slot is busy' : `all ${number(slots)} slots are busy`
    const why = isShort ? `${number(needed)} would keep up` : 'the queue grows'
    const text = `${all}, and ${why}: more workers or a higher concurrency is needed`
    found.push({ queue, kind: 'slots', level: 'warning', text })
  }
  if (!paused && oldestWaiting !== null && oldestWaiting > LATE) {
    const text = `the oldest job has waited for ${minutes(oldestWaiting)}`
    found.push({ queue, kind: 'late', level: 'warning', text })
  }
  return found
}

const number = (value: number): string => value.toLocaleString('en-US')
const minutes = (ms: number): string => {
  const whole = Math.floor(ms / 60_000)
  if (whole >= 2880) return `${number(Math.floor(whole / 1440))} days`
  if (whole >= 120) return `${number(Math.floor(whole / 60))} hours`
  return whole === 1 ? '1 minute' : `${number(whole)} minutes`
}
const jobs = (count: number): string => (count === 1 ? '1 job waits' : `${number(count)} jobs wait`)
