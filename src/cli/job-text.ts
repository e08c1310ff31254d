/** Jobs as the command shows them. No payload unless asked for: terminals are recorded and shared. */

import type { JobInfo } from '../values/jobs/job.ts'
import type { LogLine } from '../values/jobs/job-log.ts'
import type { StepInfo } from '../values/jobs/step-info.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { jsonText } from '../web/answer.ts'
import { ago, counted, lasting, NONE, time } from './figures.ts'
import { plain, table } from './table.ts'
import type { Terminal } from './terminal.ts'

export const PAYLOADS = { payloads: { help: 'shows data, progress and results, too' } } as const

/** The job for programs. @param payloads with data, progress and result */
export function jobObject(job: JobInfo, payloads: boolean): object {
  if (payloads) return job
  const { data: _, progress: __, result: ___, steps, ...facts } = job
  return { ...facts, ...(steps && { steps: steps.map(({ result: ____, ...step }) => step) }) }
}

/** Begins with what `--error-code` takes; the rest is for `--error`. */
const errorText = ({ error }: JobInfo): string => (error === null ? NONE : `${error.code}: ${error.message}`)

interface Column {
  head: string
  cell(job: JobInfo): string
  /** Only where a job has something else to tell than this. */
  unless?: string
}

const COLUMNS: readonly Column[] = [
  { head: 'id', cell: ({ id }) => id },
  { head: 'state', cell: ({ state }) => state },
  { head: 'tries', cell: ({ attempt, attempts }) => `${attempt}/${attempts}` },
  { head: 'age', cell: ({ pushedAt }) => lasting(Math.max(0, Date.now() - pushedAt.getTime())) },
  { head: 'prio', cell: ({ priority }) => String(priority), unless: String(DEFAULTS.job.priority) },
  { head: 'group', cell: ({ group }) => group ?? NONE, unless: NONE },
  { head: 'key', cell: ({ key }) => key ?? NONE, unless: NONE },
  { head: 'error', cell: errorText, unless: NONE },
]
const DATA: Column = { head: 'data', cell: ({ data }) => jsonText(data) ?? NONE }
const OF_TEXT = ['state', 'group', 'key', 'error', 'data']

export function jobsTable(terminal: Terminal, jobs: readonly JobInfo[], payloads: boolean): string {
  const all = payloads ? [...COLUMNS, DATA] : COLUMNS
  const used = all.filter(({ cell, unless }) => unless === undefined || jobs.some((job) => cell(job) !== unless))
  const heads = used.map(({ head }) => head)
  const text = heads.flatMap((head, at) => (OF_TEXT.includes(head) ? [at] : []))
  const rows = jobs.map((job) => used.map(({ cell }) => cell(job)))
  return table(terminal, heads, rows, { text, whole: [0, 1] })
}

/** One job, with everything that is known of it. */
/** @param relatives further rows: the jobs that it waits for, and those that wait for it */
export function jobText(
  terminal: Terminal,
  job: JobInfo,
  payloads: boolean,
  relatives: readonly string[][] = [],
): string {
  const moment = (at: Date | null) => (at === null ? NONE : `${at.toISOString()} (${ago(at)})`)
  const { error } = job
  const rows = [
    ['id', job.id],
    ['queue', job.queue],
    ['state', job.waitsFor === undefined ? job.state : `${job.state}, waits for ${counted(job.waitsFor, 'job')}`],
    ...(job.onDead === 'run' ? [['when one dies', 'it runs all the same']] : []),
    ...relatives,
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
    ...(job.waits ?? []).map(({ kind, name, until }) => [
      'parked',
      `${kind} ${name}${until === null ? '' : `, until ${moment(until)}`}`,
    ]),
    ...(job.steps ?? []).map((step) => ['step', stepText(step, payloads)]),
    ...(payloads ? payloadRows(job) : []),
  ]
  const stack = error?.stack === undefined ? '' : `\n${error.stack.split('\n').map(plain).join('\n')}\n`
  const log = job.log.length === 0 ? '' : `\n${job.log.map(logText).join('\n')}\n`
  return table({ ...terminal, isTTY: {} }, null, rows, { text: [1] }) + stack + log
}

function stepText({ name, kind, state, took, error, result }: StepInfo, payloads: boolean): string {
  const what = kind === 'step' ? name : `${kind} ${name}`
  const time = took === null ? '' : ` in ${lasting(took)}`
  const how = error === null ? `${state}${time}` : `${state}${time}: ${error.code}: ${error.message}`
  return payloads && result !== undefined ? `${what}: ${how}: ${jsonText(result)}` : `${what}: ${how}`
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
