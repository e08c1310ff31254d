/** Why jobs wait, and the commands that help. */
import type { WaitReason } from '../pond/explain.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import { attentionTo } from './attention.ts'
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
  return {
    queue: told.queue,
    id,
    lines: [told.text],
    actions: told.reasons.flatMap((one) => actionFor(one, told.queue)),
  }
}

export async function explainedQueue(pond: Millpond, queue: Queue): Promise<Explained> {
  const report = await queue.stats()
  const { counts } = report
  if (counts.waiting === 0) {
    const scheduled = counts.scheduled > 0 ? `; ${counted(counts.scheduled, 'job')} scheduled` : ''
    return { queue: queue.name, lines: [`No job waits${scheduled}.`], actions: [] }
  }
  const [next] = await queue.jobs('waiting', { limit: 1 })
  const told = next === undefined ? undefined : await pond.explain(next.id)
  const lines = [`${counted(counts.waiting, 'job')} ${counts.waiting === 1 ? 'waits' : 'wait'}, ${counts.running} run.`]
  if (told !== undefined) lines.push(told.text)
  const actions = (told?.reasons ?? []).flatMap((reason) => actionFor(reason, queue.name))
  for (const { kind, text, action } of attentionTo(report)) {
    // The others are among the reasons of the job.
    if (kind !== 'groupLimit' && kind !== 'full') continue
    lines.push(kind === 'full' ? `The queue ${text}.` : `${text[0]?.toUpperCase()}${text.slice(1)}.`)
    actions.push(action)
  }
  if (report.groupsAtLimit > 0) {
    for (const { group, waiting, running } of await groupsAtLimit(queue)) {
      lines.push(
        `Group ${group === '' ? "'' (jobs without one)" : group}: ${waiting} wait, ${running} run, and no more may.`,
      )
    }
  }
  return { queue: queue.name, ...(next !== undefined && { id: next.id }), lines, actions: [...new Set(actions)] }
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
    case 'noWorker':
      return ['start workers of this queue; millpond workers lists those that there are']
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
    case 'behind':
      return [`millpond plan --queue ${queue} tells how many workers it needs`]
    default:
      return []
  }
}

/** For a shell. */
export const quoted = (text: string): string =>
  /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
