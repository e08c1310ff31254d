/** Why jobs wait, and the commands that help. */

import type { WaitReason } from '../pond/explain.ts'
import { internalsOf } from '../pond/internals.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import type { QueueReport } from '../pond/stats.ts'
import { slotsOf } from '../pond/worker-info.ts'
import { lanesOf, lanesText, silentFor } from '../values/figures/worker-text.ts'
import type { GroupRecord } from '../values/settings/limits.ts'
import { allBusy, attentionTo, heardIn, moreSlots, PAUSE_ENDS, START_WORKERS, workersGone } from './attention.ts'
import { counted } from './figures.ts'
import { unknownJob } from './open.ts'

export interface Explained {
  queue: string
  /** The job that was asked for, or the next one of the queue. */
  id?: string
  lines: string[]
  actions: string[]
}

/** Groups at their limit that are told of. */
const MAX_GROUPS = 10
/** Silent workers that are told of. */
const MAX_SILENT = 10
/** Pages of groups that are looked through for them. */
const MAX_PAGES = 10

export async function explainedJob(pond: Millpond, id: string): Promise<Explained> {
  const told = await pond.explain(id)
  if (told === undefined) throw unknownJob(id)
  const report = await pond.queue(told.queue).stats()
  const actions = await actionsFor(pond, told.reasons, report)
  const explained = { queue: told.queue, id, lines: [told.text], actions }
  if (told.state === 'waiting') await addGone(pond, report, explained)
  return explained
}

export async function explainedQueue(pond: Millpond, queue: Queue): Promise<Explained> {
  const report = await queue.stats()
  const { counts } = report
  if (counts.waiting === 0) {
    const scheduled = counts.scheduled > 0 ? `; ${counted(counts.scheduled, 'job is', 'jobs are')} scheduled` : ''
    const blocked = counts.blocked > 0 ? `; ${counted(counts.blocked, 'job waits', 'jobs wait')} for other jobs` : ''
    return { queue: queue.name, lines: [`No job waits${scheduled}${blocked}.`], actions: [] }
  }
  const [next] = await queue.jobs('waiting', { limit: 1 })
  const told = next === undefined ? undefined : await pond.explain(next.id)
  const lines = [`${counted(counts.waiting, 'job waits', 'jobs wait')}, ${counted(counts.running, 'runs', 'run')}.`]
  const actions: string[] = []
  const isGone = await addGone(pond, report, { lines, actions })
  if (told !== undefined) lines.push(told.text)
  actions.push(...(await actionsFor(pond, told?.reasons ?? [], report)))
  const full = attentionTo(report, null).find(({ kind }) => kind === 'full')
  if (full !== undefined) {
    lines.push(`The queue: ${full.text}.`)
    actions.push(full.action)
  }
  const isHeld = told?.reasons.some(({ kind }) => kind !== 'behind') ?? false
  if (pond.store.capabilities.workers) await addWorkers(pond, report, { lines, actions }, isHeld || isGone)
  if (report.groupsAtLimit > 0) {
    for (const found of await groupsAtLimit(queue)) {
      const { group, waiting, running } = found
      const name = group === '' ? 'The jobs without a group' : `Group ${group}`
      lines.push(`${name}: ${waiting} wait, ${running} run, and no more may.`)
      actions.push(...groupCommands(queue.name, found, report.limits, 'running'))
    }
  }
  return { queue: queue.name, ...(next !== undefined && { id: next.id }), lines, actions: [...new Set(actions)] }
}

/** Says first that the workers are gone, if they are: no limit helps then. @returns whether they are */
async function addGone(
  pond: Millpond,
  report: QueueReport,
  { lines, actions }: Pick<Explained, 'lines' | 'actions'>,
): Promise<boolean> {
  const gone = workersGone(report, report.counts.running > 0 ? await heardIn(pond) : null)
  if (gone === undefined) return false
  lines.unshift(`${gone[0]?.toUpperCase()}${gone.slice(1)}.`)
  actions.unshift(START_WORKERS)
  return true
}

/** Says which workers are silent, and where nothing else holds the jobs back, whether their slots do. */
async function addWorkers(
  pond: Millpond,
  report: QueueReport,
  { lines, actions }: Pick<Explained, 'lines' | 'actions'>,
  isHeld: boolean,
): Promise<void> {
  const { queue } = report
  const workers = await pond.workers({ queue })
  for (const { host, pid, silence } of workers.filter(({ silent }) => silent).slice(0, MAX_SILENT)) {
    const since = `The worker of process ${pid} on ${host} is ${silentFor(silence)}`
    lines.push(`${since}: it may have been killed, and its jobs come back when their leases end.`)
  }
  if (isHeld) return
  const alive = workers.filter(({ silent }) => !silent)
  if (alive.length === 0) {
    if (workers.length === 0)
      lines.push('No worker of this queue was heard of in the last minute; what runs may be lost.')
    actions.push('start workers of this queue')
    return
  }
  const { slots, taken } = slotsOf(workers, report.counts.running)
  const theirs = counted(alive.length, 'worker works', 'workers work')
  if (taken >= slots) {
    lines.push(`${theirs} on it, and ${allBusy(slots)}: more workers, or a higher concurrency of theirs, is needed.`)
    actions.push(moreSlots(queue))
    return
  }
  lines.push(`${theirs} on it; ${taken} of ${counted(slots, 'slot is', 'slots are')} busy.`)
  const most = report.limits?.running ?? null
  if (most !== null && most < slots) {
    // For a moment fewer run than may: a job has just ended.
    lines.push(
      `The limit of the queue lets ${counted(most, 'job', 'jobs')} run at once, and so not all slots can be busy.`,
    )
    actions.push(raiseLimit(queue))
    return
  }
  const lanes = lanesOf(alive)
  if (lanes !== null) lines.push(`Slots that are kept for urgent jobs: ${lanesText(lanes, slots)}.`)
  const reserved = lanes?.reduce((sum, { reserve }) => sum + reserve, 0) ?? 0
  if (taken >= slots - reserved) actions.push(`the slots that are free are kept for urgent jobs; ${moreSlots(queue)}`)
  else
    actions.push(
      `slots are free, so jobs start soon; if they do not, millpond workers ${queue} tells how the workers are`,
    )
}

async function groupsAtLimit(queue: Queue) {
  const found = []
  let after: string | undefined
  for (let page = 0; page < MAX_PAGES && found.length < MAX_GROUPS; page++) {
    const groups = await queue.groups({ limit: 1000, after })
    found.push(...groups.filter(({ waiting, running, nextStart }) => waiting > 0 && running > 0 && nextStart === null))
    after = groups.at(-1)?.group
    if (groups.length < 1000) break
  }
  return found.toSorted((a, b) => b.waiting - a.waiting).slice(0, MAX_GROUPS)
}

async function actionsFor(pond: Millpond, reasons: readonly WaitReason[], report: QueueReport): Promise<string[]> {
  const all: string[] = []
  for (const reason of reasons) all.push(...(await actionFor(pond, reason, report)))
  return all
}

async function actionFor(pond: Millpond, reason: WaitReason, { queue, limits }: QueueReport): Promise<string[]> {
  switch (reason.kind) {
    case 'parents':
      return reason.parents.slice(0, 1).map(({ id }) => `millpond explain ${id}`)
    case 'noWorker':
      return [START_WORKERS]
    case 'paused':
      return [`millpond resume ${queue}`]
    case 'queueLimit':
      return [raiseLimit(queue)]
    case 'queueRate':
      return [limits?.rate == null ? PAUSE_ENDS : `millpond limits ${queue} --rate N/s`]
    case 'groupLimit':
      return groupCommands(queue, await groupOf(pond, queue, reason.group), limits, 'running')
    case 'groupRate':
      return groupCommands(queue, await groupOf(pond, queue, reason.group), limits, 'rate')
    default:
      return []
  }
}

const raiseLimit = (queue: string): string => `millpond limits ${queue} --running N`

type Group = Pick<GroupRecord, 'group' | 'limits'>

async function groupOf(pond: Millpond, queue: string, group: string): Promise<Group> {
  const { store } = internalsOf(pond)
  const [found] = await store.operations.groups({ queue, group, limit: 1 })
  return found ?? { group, limits: null }
}

/** A limit that is the group's own is raised for it alone; one of all groups can be raised for it, or for all. */
function groupCommands(
  queue: string,
  { group, limits: own }: Group,
  limits: QueueReport['limits'],
  limit: 'running' | 'rate',
): string[] {
  const most = limit === 'running' ? 'N' : 'N/s'
  const isOwn = (own?.[limit] ?? null) !== null
  // The limits of all groups do not hold for the jobs without one.
  const isAll = !isOwn && group !== '' && (limits?.group?.[limit] ?? null) !== null
  if (!isOwn && !isAll) return [limit === 'rate' ? PAUSE_ENDS : `millpond limits ${queue} --group ${quoted(group)}`]
  return [
    `millpond limits ${queue} --group ${quoted(group)} --${limit} ${most}`,
    ...(isAll ? [`millpond limits ${queue} --group-${limit} ${most}, for every group`] : []),
  ]
}

/** For a shell. */
export const quoted = (text: string): string =>
  /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
