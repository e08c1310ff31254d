/** A job of BullMQ's as a job of Millpond's. docs/move.md has the table. */
import type { JobError, JobRecord } from '../../../values/jobs/records.ts'
import { foreignId } from '../foreign-id.ts'

/** A job as the scripts give it: its id, the list it was in with its score, and the fields of its hash in turns with their values. */
export type Taken = [id: string, from: string, fields: string[]]

const DEFAULT_PRIORITY = 4

/** @param prefix of BullMQ's keys */
export function recordOf([id, from, list]: Taken, prefix: string, queue: string): JobRecord {
  const fields = new Map<string, string>()
  for (let i = 0; i + 1 < list.length; i += 2) fields.set(list[i] ?? '', list[i + 1] ?? '')
  const number = (...names: string[]): number | null => {
    const text = names.map((name) => fields.get(name)).find((value) => value !== undefined)
    return text === undefined || !Number.isFinite(Number(text)) ? null : Number(text)
  }
  const [state, score = 0] = stateOf(from)
  const pushedAt = number('timestamp') ?? 0
  const opts = parsed(fields.get('opts'))
  const finishedAt = state === 'dead' ? (number('finishedOn') ?? score) : null
  const made = number('atm', 'attemptsMade') ?? 0
  const progress = fields.get('progress')
  const startedAt = number('processedOn')
  return {
    id: foreignId(pushedAt, 'bullmq', prefix, queue, id),
    ...{ queue, state, priority: priorityOf(number('priority') ?? 0) },
    ...{ attempt: made, attempts: Math.max(1, made, Number(opts.attempts) || 1), fence: 0 },
    key: state === 'dead' ? null : (fields.get('deid') ?? null),
    ...{ group: null, cost: 1, timeout: null, trace: null, pushedAt },
    dueAt: state === 'scheduled' ? Math.floor(score / 0x1000) : pushedAt,
    startedAt,
    finishedAt,
    worker: startedAt === null ? null : (fields.get('pb') ?? 'BullMQ'),
    data: { encoding: 'json', body: dataOf(fields) },
    progress: progress === undefined ? null : { encoding: 'json', body: progress },
    result: null,
    error: errorOf(fields),
  }
}

function stateOf(from: string): ['waiting' | 'scheduled' | 'dead', number | undefined] {
  const [list, score] = from.split(' ')
  return [list === 'delayed' ? 'scheduled' : list === 'failed' ? 'dead' : 'waiting', Number(score)]
}

/** There, jobs without a priority come first, then 1, 2, 3 and so on; here they keep that order, as far as there are priorities. */
function priorityOf(given: number): number {
  return Math.max(0, DEFAULT_PRIORITY - given)
}

/** The texts as they are, since parsing would change large numbers. */
function dataOf(fields: ReadonlyMap<string, string>): string {
  const name = JSON.stringify(fields.get('name') ?? '')
  return `{"name":${name},"data":${fields.get('data') || '{}'}}`
}

function errorOf(fields: ReadonlyMap<string, string>): JobError | null {
  const message = fields.get('failedReason')
  if (message === undefined) return null
  const traces: unknown = parsedList(fields.get('stacktrace'))
  const stack: unknown = Array.isArray(traces) ? traces.at(-1) : undefined
  return {
    ...{ code: 'HandlerFailed', name: 'Error', message: message.slice(0, 4000) },
    ...(typeof stack === 'string' && { stack: stack.slice(0, 8000) }),
  }
}

function parsed(text: string | undefined): Record<string, unknown> {
  const value = parsedList(text)
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function parsedList(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return null
  }
}
