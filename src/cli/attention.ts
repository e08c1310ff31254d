/** What somebody should look at in a queue, from its figures alone, and the command that helps. */
import type { Millpond } from '../pond/millpond.ts'
import type { QueueReport } from '../pond/stats.ts'
import { silentText, slotsOf, type WorkerInfo } from '../pond/worker-info.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { counted, grouped, lasting } from './figures.ts'
import { rateText } from './settings-text.ts'

type Kind = 'noWorker' | 'workersGone' | 'silent' | 'slots' | 'paused' | 'full' | 'dead' | HeldKind
type HeldKind = 'queueLimit' | 'queueRate' | 'groupLimit' | 'groupRate'

export interface Attention {
  kind: Kind
  queue: string
  text: string
  /** What to do. */
  action: string
}

/** Those that were heard of in the last minute, of all queues; null: the store does not know. */
export type Heard = readonly Pick<WorkerInfo, 'queue' | 'slots' | 'busy' | 'silence'>[] | null

export async function heardIn(pond: Millpond): Promise<Heard> {
  return pond.store.capabilities.workers ? pond.workers() : null
}

export const START_WORKERS = 'start workers of this queue; millpond workers lists those that there are'
/** Milliseconds that the oldest job waits before busy slots are told of: shorter backlogs come and go. */
const LONG = 10_000

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
  const { queue, counts, paused, capacity, lastClaim } = report
  const found: Attention[] = []
  const add = (kind: Kind, text: string, action: string) => found.push({ kind, queue, text, action })
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
  const own = (workers ?? []).filter((one) => one.queue === queue)
  const silent = silentText(own)
  if (silent !== undefined) add('silent', silent, `jobs come back when leases end; millpond workers ${queue}`)
  if (paused) add('paused', 'it is paused', `millpond resume ${queue}`)
  if (capacity !== null && counts.waiting + counts.scheduled + counts.blocked >= capacity) {
    add('full', `it is full: its capacity is ${grouped(capacity)}`, `millpond limits ${queue} --capacity N`)
  }
  found.push(...heldByLimits(report))
  const { slots, taken } = slotsOf(own, counts.running)
  const isHeld = paused || report.nextStart !== 0
  if (!isHeld && counts.waiting > 0 && (report.oldestWaiting ?? 0) >= LONG && slots > 0 && taken >= slots) {
    const text = `${allBusy(slots)}, and ${counted(counts.waiting, 'job waits', 'jobs wait')}`
    add('slots', text, moreSlots(queue))
  }
  if (counts.dead > 0)
    add('dead', counted(counts.dead, 'job is dead', 'jobs are dead'), `millpond jobs ${queue} --state dead`)
  return found
}

export const allBusy = (slots: number): string =>
  slots === 1 ? 'the only slot is busy' : `all ${grouped(slots)} slots are busy`

export const moreSlots = (queue: string): string =>
  `start more workers, or raise their concurrency; millpond plan --queue ${queue} tells how many slots it needs`

/** What its limits and rates, and those of its groups, hold back. */
function heldByLimits({ queue, counts, limits, nextStart, groupsAtLimit, groupsHeld }: QueueReport): Attention[] {
  const found: Attention[] = []
  const add = (kind: HeldKind, text: string, action: string) => found.push({ kind, queue, text, action })
  if (counts.waiting > 0 && nextStart === null) {
    const most = limits?.running ?? null
    add(
      'queueLimit',
      `it runs as many jobs as it may${most === null ? '' : `, ${grouped(most)}`}`,
      `millpond limits ${queue} --running N`,
    )
  } else if (counts.waiting > 0 && (nextStart ?? 0) > 0) {
    const next = `the next job may start in ${lasting(nextStart ?? 0)}`
    if (limits?.rate != null)
      add('queueRate', `its rate is ${rateText(limits.rate)}: ${next}`, `millpond limits ${queue} --rate N/s`)
    else add('queueRate', `a handler asked for a pause: ${next}`, PAUSE_ENDS)
  }
  const groups = (count: number, one: string, many: string) =>
    `${counted(count, `group ${one}`, `groups ${many}`)}, and jobs of ${count === 1 ? 'it' : 'them'} wait`
  const command = `millpond limits ${queue}`
  /** @param all the option that raises it for every group */
  const raise = (all: string | undefined, own: string) =>
    `${all === undefined ? '' : `${command} ${all}, or for one `}${command} --group NAME ${own}`
  if (groupsAtLimit > 0) {
    const all = limits?.group?.running == null ? undefined : '--group-running N'
    const action = `${raise(all, '--running N')}; millpond explain ${queue} names them`
    add('groupLimit', groups(groupsAtLimit, 'is at its limit', 'are at their limit'), action)
  }
  if (groupsHeld > 0) {
    const all = limits?.group?.rate == null ? undefined : '--group-rate N/s'
    const held = groups(groupsHeld, 'waits for its rate or a pause', 'wait for their rates or pauses')
    add('groupRate', held, `${raise(all, '--rate N/s')}; ${command} lists them`)
  }
  return found
}

/** Of `ctx.rateLimited`. */
export const PAUSE_ENDS = 'nothing to raise: a pause by ctx.rateLimited ends by itself'

/** On one line. */
export const attentionText = ({ queue, text, action }: Attention): string => `${queue}: ${text} → ${action}`
