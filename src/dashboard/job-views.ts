/** Jobs as the page shows them. */

import { readLogLine } from '../values/jobs/job-log.ts'
import type { JobRecord } from '../values/jobs/records.ts'
import { payloadView, shownValue } from './payload.ts'
import type { Redaction } from './redact.ts'
import type { ErrorView, JobPage, JobRow, LineView, May } from './views.ts'

/** Of a list: an error's message there is for a glance. */
const MAX_GLANCE = 300

export function jobRow(record: JobRecord, may: May): JobRow {
  const { id, state, priority, attempt, attempts, key, group, pushedAt, dueAt, startedAt, finishedAt, worker } = record
  const error = errorView(record, may)
  return {
    ...{ id, state, priority, attempt, attempts, key, group, pushedAt, dueAt, startedAt, finishedAt, worker },
    error: error && { ...error, message: error.message?.slice(0, MAX_GLANCE).toWellFormed() ?? null, stack: null },
  }
}

/** @param redaction of whole payloads: their first name is `data`, `progress`, `result` or `log` */
export function jobPage(
  record: JobRecord,
  may: May,
  redaction: Redaction,
  why: string | null,
): Omit<JobPage, 'relatives'> {
  const { queue, cost, timeout, trace } = record
  const locked = { state: 'locked' } as const
  const payload = (part: 'data' | 'progress' | 'result') => {
    if (record[part] === null) return { state: 'none' } as const
    return may.payloads ? payloadView(record, part, redaction.at(part)) : locked
  }
  return {
    ...jobRow(record, may),
    ...{ queue, may, cost, timeout, trace, why, error: errorView(record, may) },
    ...{ data: payload('data'), progress: payload('progress'), result: payload('result') },
    log: may.payloads ? (record.log ?? []).map((line) => lineView(line, redaction.at('log'))) : null,
  }
}

function errorView({ error }: JobRecord, { payloads }: May): ErrorView | null {
  if (error === null) return null
  const { code, name, message, stack } = error
  return { code, name, message: payloads ? message : null, stack: payloads ? (stack ?? null) : null }
}

function lineView(line: string, redaction: Redaction): LineView {
  const { at, attempt, message, fields, cut } = readLogLine(line)
  const shown = fields === undefined ? null : shownValue(fields, redaction)
  return { at: at?.getTime() ?? null, attempt, message: message.toWellFormed(), fields: shown, cut }
}
