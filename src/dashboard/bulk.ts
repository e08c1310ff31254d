/** Changes of everything that a search finds: a preview, then the change with its progress. */
import { JOB_STATES } from '../store.ts'
import { isMillpondError } from '../values/errors.ts'
import { checkOptions, isBoolean, type Rules } from '../values/options.ts'
import { safeText } from '../values/safe-error.ts'
import { Refusal } from '../web/problem.ts'
import { bulkChange, bulkPreview } from './bulk-run.ts'
import type { Call } from './context.ts'
import { jobRow } from './job-views.ts'
import { isName } from './reads.ts'
import { mayAsk, SEARCH_RULES } from './search-input.ts'
import type { BulkAction, BulkBody, BulkLine, BulkPreviewView, Search } from './views.ts'

/** Which states each action takes. */
const ACTIONS: Readonly<Record<BulkAction, readonly string[]>> = {
  requeue: ['dead', 'cancelled'],
  cancel: ['scheduled', 'waiting', 'running'],
  remove: JOB_STATES,
  promote: ['scheduled'],
}

const isAction = (value: unknown): boolean | string =>
  (typeof value === 'string' && Object.hasOwn(ACTIONS, value)) || `one of ${Object.keys(ACTIONS).join(', ')}`
const RULES: Rules<BulkBody> = {
  queue: isName,
  action: isAction,
  search: (value) => checkOptions(value as Search, SEARCH_RULES, 'search', ['state']) !== undefined,
  preview: isBoolean,
  from: (value) => typeof value === 'string' || 'what the preview gave',
}

/** @returns the preview, or lines of JSON with the progress */
export async function bulk(call: Call, body: object): Promise<BulkPreviewView | Response> {
  const given = checkOptions<BulkBody>(body as BulkBody, RULES, 'bulk', ['queue', 'action', 'search'])
  const { queue, action, search, preview = false } = given
  const may = await call.operated(queue)
  mayAsk(search, { may, redaction: call.context.redaction })
  if (!ACTIONS[action].includes(search.state)) {
    throw new Refusal(400, `${action} takes jobs that are ${ACTIONS[action].join(', ')}.`, { code: 'InvalidOption' })
  }
  const { pond } = call
  if (preview) {
    const { ids, ...seen } = await bulkPreview(pond, given, call.request.signal)
    const records = await pond.parts.store.operations.find({ ids })
    return { ...seen, sample: records.flatMap((record) => (record === null ? [] : [jobRow(record, may)])) }
  }
  return progressAnswer(call, given)
}

/**
 * The change goes on while the answer is read, a step at a time, and ends when the reader leaves. What was changed by then is told of.
 */
function progressAnswer(call: Call, given: BulkBody): Response {
  const encoder = new TextEncoder()
  const stop = new AbortController()
  const leave = () => stop.abort()
  call.request.signal.addEventListener('abort', leave)
  let latest = { looked: 0, total: 0, changed: 0 }
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (line: BulkLine) => {
        if (!stop.signal.aborted) controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`))
      }
      try {
        latest = await bulkChange(call.pond, given, stop.signal, (progress) => {
          latest = progress
          send({ kind: 'progress', ...progress })
        })
        send({ kind: 'done', ...latest })
      } catch (error) {
        const message = isMillpondError(error) ? error.code : safeText(error)
        send({ kind: 'failed', message, ...latest })
      } finally {
        call.request.signal.removeEventListener('abort', leave)
        call.acted(`${given.action}All`, given.queue, { count: latest.changed })
        if (!stop.signal.aborted) controller.close()
      }
    },
    cancel: leave,
  })
  return new Response(stream, { headers: { 'content-type': 'application/x-ndjson' } })
}
