/** Why jobs wait, and the commands that help. */
import type { WaitReason } from '../pond/explain.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import type { QueueReport } from '../pond/stats.ts'
import { attentionTo, heardIn, START_WORKERS, workersGone } from './attention.ts'
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
/** Pages of groups that are looked through for them. */
const MAX_PAGES = 10

export async function explainedJob(pond: Millpond, id: string): Promise<Explained> {
  const told = await pond.explain(id)
  if (told === undefined) throw unknownJob(id)
  const explained = {
    queue: told.queue,
    id,
    lines: [told.text],
    actions: told.reasons.flatMap((one) => actionFor(one, told.queue)),
  }
  if (told.state === 'waiting') await addGone(pond, await pond.queue(told.queue).stats(), explained)
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
  actions.push(...(told?.reasons ?? []).flatMap((reason) => actionFor(reason, queue.name)))
  const full = attentionTo(report, null).find(({ kind }) => kind === 'full')
  if (full !== undefined) {
    lines.push(`The queue: ${full.text}.`)
    actions.push(full.action)
  }
  const isHeld = told?.reasons.some(({ kind }) => kind !== 'behind') ?? false
  if (!isHeld && !isGone && pond.store.capabilities.workers) await addWorkers(pond, queue.name, lines, actions)
  if (report.groupsAtLimit > 0) {
    for (const { group, waiting, running } of await groupsAtLimit(queue)) {
      const name = group === '' ? 'The jobs without a group' : `Group ${group}`
      lines.push(`${name}: ${waiting} wait, ${running} run, and no more may.`)
      actions.push(`millpond limits ${queue.name} --group ${quoted(group)} --running N`)
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

/** Where nothing else holds the jobs back, it is the workers. */
async function addWorkers(pond: Millpond, queue: string, lines: string[], actions: string[]): Promise<void> {
  const workers = await pond.workers({ queue })
  const slots = workers.reduce((sum, one) => sum + one.slots, 0)
  const busy = workers.reduce((sum, one) => sum + one.busy, 0)
  if (workers.length === 0) {
    lines.push('No worker of this queue was heard of in the last minute; what runs may be lost.')
    actions.push('start workers of this queue')
  } else {
    lines.push(
      `${counted(workers.length, 'worker works', 'workers work')} on it; ${busy} of ${counted(slots, 'slot is', 'slots are')} busy.`,
    )
    actions.push(`start more workers; millpond plan --queue ${queue} tells how many it needs`)
  }
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

function actionFor(reason: WaitReason, queue: string): string[] {
  switch (reason.kind) {
    case 'parents':
      return reason.parents.slice(0, 1).map(({ id }) => `millpond explain ${id}`)
    case 'noWorker':
      return [START_WORKERS]
    case 'paused':
      return [`millpond resume ${queue}`]
    case 'queueLimit':
      return [`millpond limits ${queue} --running N`]
    case 'queueRate':
      return [`millpond limits ${queue} --rate N/s`]
    case 'groupLimit':
      return [`millpond limits ${queue} --group ${quoted(reason.group)} --running N`]
    case 'groupRate':
      return [`millpond limits ${queue} --group ${quoted(reason.group)} --rate N/s`]
    default:
      return []
  }
}

/** For a shell. */
export const quoted = (text: string): string =>
  /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
