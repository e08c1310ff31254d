/** Jobs as the command shows them. No payload unless asked for: terminals are recorded and shared. */
import type { JobInfo } from '../values/job.ts'
import type { LogLine } from '../values/job-log.ts'
import { jsonText } from '../web/answer.ts'
import { ago, NONE, time } from './figures.ts'
import { plain, table } from './table.ts'
import type { Terminal } from './terminal.ts'

export const PAYLOADS = { payloads: { help: 'shows data, progress and results, too' } } as const

/** The job for programs. @param payloads with data, progress and result */
export function jobObject(job: JobInfo, payloads: boolean): object {
  const { data, progress, result, ...facts } = job
  return payloads ? { ...facts, data, progress, result } : facts
}

const HEADS = ['id', 'state', 'prio', 'attempt', 'pushed', 'group', 'key', 'error']
const TEXT_COLUMNS = [1, 5, 6, 7, 8]

export function jobsTable(terminal: Terminal, jobs: readonly JobInfo[], payloads: boolean): string {
  const rows = jobs.map((job) => [
    job.id,
    job.state,
    String(job.priority),
    `${job.attempt}/${job.attempts}`,
    ago(job.pushedAt),
    job.group ?? NONE,
    job.key ?? NONE,
    job.error === null ? NONE : `${job.error.code}: ${job.error.message}`,
    ...(payloads ? [jsonText(job.data) ?? NONE] : []),
  ])
  return table(terminal, payloads ? [...HEADS, 'data'] : HEADS, rows, { text: TEXT_COLUMNS })
}

/** One job, with everything that is known of it. */
export function jobText(terminal: Terminal, job: JobInfo, payloads: boolean): string {
  const moment = (at: Date | null) => (at === null ? NONE : `${at.toISOString()} (${ago(at)})`)
  const { error } = job
  const rows = [
    ['id', job.id],
    ['queue', job.queue],
    ['state', job.state],
    ['priority', String(job.priority)],
    ['attempt', `${job.attempt} of ${job.attempts}`],
    ...(job.key === null ? [] : [['key', job.key]]),
    ...(job.group === null ? [] : [['group', job.group]]),
    ...(job.cost === 1 ? [] : [['cost', String(job.cost)]]),
    ...(job.timeout === null ? [] : [['timeout', time(job.timeout)]]),
    ...(job.trace === null ? [] : [['trace', job.trace]]),
    ['pushed', moment(job.pushedAt)],
    ['due', moment(job.dueAt)],
    ['started', moment(job.startedAt)],
    ['finished', moment(job.finishedAt)],
    ...(job.worker === null ? [] : [['worker', job.worker]]),
    ...(error === null ? [] : [['error', `${error.code}: ${error.name}: ${error.message}`]]),
    ...(job.undecodable.length === 0 ? [] : [['cannot be decoded', job.undecodable.join(', ')]]),
    ...(payloads ? payloadRows(job) : []),
  ]
  const stack = error?.stack === undefined ? '' : `\n${error.stack.split('\n').map(plain).join('\n')}\n`
  const log = job.log.length === 0 ? '' : `\n${job.log.map(logText).join('\n')}\n`
  return table({ ...terminal, isTTY: {} }, null, rows, { text: [1] }) + stack + log
}

function payloadRows(job: JobInfo): string[][] {
  return (['data', 'progress', 'result'] as const).flatMap((part) =>
    job[part] === undefined ? [] : [[part, jsonText(job[part])]],
  )
}

function logText({ at, attempt, message, fields }: LogLine): string {
  const when = at === null ? NONE : at.toISOString()
  const more = fields === undefined || fields === null ? '' : ` ${jsonText(fields)}`
  return plain(`${when} [${attempt ?? NONE}] ${message}${more}`)
}
