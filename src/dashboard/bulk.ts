/** Changes of everything that a search finds: a preview, then the change with its progress. */

import { searchText } from '../pond/action-detail.ts'
import type { BulkProgress } from '../pond/bulk-options.ts'
import { internalsOf } from '../pond/internals.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import { safeText } from '../values/errors/safe-error.ts'
import { checkOptions, defined, isBoolean, type Rules } from '../values/options/options.ts'
import { type BulkChange, bulkChange } from './bulk-run.ts'
import type { Call } from './context.ts'
import { jobRow } from './job-views.ts'
import { isName } from './reads.ts'
import { mayAsk, SEARCH_RULES } from './search-input.ts'
import type { BulkAction, BulkBody, BulkLine, BulkPreviewView, Search } from './views.ts'

const ACTIONS: readonly BulkAction[] = ['requeue', 'cancel', 'remove', 'promote']
const isAction = (value: unknown): boolean | string =>
  ACTIONS.some((action) => action === value) || `one of ${ACTIONS.join(', ')}`
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
  const { queue, search, preview = false } = given
  const may = await call.operated(queue)
  mayAsk(search, { may, redaction: call.context.redaction })
  const { pond } = call
  const change = bulkChange(pond.queue(queue), given)
  if (!preview) return progressAnswer(call, given, change)
  const { count, isEstimate, sample, from } = await change.preview({ dryRun: true, signal: call.request.signal })
  // The sample has the payloads; of the store's records only what the caller may see is shown.
  const records = await internalsOf(pond).store.operations.find({ ids: sample.map(({ id }) => id) })
  const rows = records.flatMap((record) => (record === null ? [] : [jobRow(record, may)]))
  return { count, isEstimate, sample: rows, from }
}

/**
 * The change goes on while the answer is read, a step at a time, and ends when the reader leaves. What was changed by then is told of.
 */
function progressAnswer(call: Call, { queue, action, search, from }: BulkBody, change: BulkChange): Response {
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
        const onProgress = ({ looked, total, changed }: BulkProgress) => {
          latest = { looked, total, changed }
          send({ kind: 'progress', ...latest })
        }
        const { looked, changed } = await change.run({ signal: stop.signal, onProgress, ...defined({ after: from }) })
        latest = { ...latest, looked, changed }
        send({ kind: 'done', ...latest })
      } catch (error) {
        const message = isMillpondError(error) ? error.code : safeText(error)
        send({ kind: 'failed', message, ...latest })
      } finally {
        call.request.signal.removeEventListener('abort', leave)
        await call.acted(`${action}All`, queue, { count: latest.changed, ...defined({ detail: searchText(search) }) })
        if (!stop.signal.aborted) controller.close()
      }
    },
    cancel: leave,
  })
  return new Response(stream, { headers: { 'content-type': 'application/x-ndjson' } })
}
