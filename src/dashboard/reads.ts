/** Operations that show something. */
import { internalsOf } from '../pond/internals.ts'
import type { JobsQuery } from '../pond/listing.ts'
import type { Store } from '../store.ts'
import { checkId } from '../values/jobs/ids.ts'
import type { ListedRecord } from '../values/operations/requests.ts'
import { checkOptions, defined, isInteger } from '../values/options/options.ts'
import { checkQueueName } from '../values/settings/names.ts'
import type { Call } from './context.ts'
import { placesIn } from './data-places.ts'
import { jobPage, jobRow } from './job-views.ts'
import { relatives, why } from './relatives.ts'
import { SEARCH_RULES, searchQuery } from './search-input.ts'
import type { JobPage, JobsPage, QueuePage, Search, WorkerRow } from './views.ts'

/** Groups of one page, and jobs whose worker is looked for. */
const MAX_GROUPS = 200
const MAX_RUNNING = 500
/** Milliseconds. */
export const SEARCH_TIME = 200

export const isName = (value: unknown): boolean => checkQueueName(value) !== ''
export const isJob = (value: unknown): boolean => typeof value === 'string' && checkId(value) !== ''
export const isText = (value: unknown): boolean | string => typeof value === 'string' || 'a text'

/** A queue: how it is, its settings and its first groups, or those after one. */
export async function queue(call: Call, body: object): Promise<QueuePage> {
  const rules = { queue: isName, after: isText }
  const { queue: name, after } = checkOptions<{ queue: string; after?: string }>(
    body as { queue: string },
    rules,
    'queue',
    ['queue'],
  )
  const { pond } = call
  const may = await call.seen(name)
  const { capabilities, operations } = internalsOf(pond).store
  const own = pond.queue(name)
  const [report, settings, groups] = await Promise.all([
    own.stats(),
    own.settings(),
    capabilities.groups ? operations.groups({ queue: name, limit: MAX_GROUPS, ...defined({ after }) }) : null,
  ])
  return { may, report, settings, groups }
}

export async function jobs(call: Call, body: object): Promise<JobsPage> {
  const rules = { ...SEARCH_RULES, queue: isName, after: isText, limit: isInteger(1, 200) }
  type Body = Search & { queue: string; after?: string; limit?: number }
  const { queue: name, ...search } = checkOptions<Body>(body as Body, rules, 'jobs', ['queue', 'state'])
  const may = await call.seen(name)
  const { store } = internalsOf(call.pond)
  const query = searchQuery(store, name, search, { may, redaction: call.context.redaction })
  const { found, next, isPart } = await searched(store, query)
  const places = may.payloads && store.capabilities.text ? placesIn(found, call.context.redaction) : []
  return { jobs: found.map((record) => jobRow(record, may)), next, isPart, places, may }
}

/** Filters have no index. A rare match is looked for as long as a person waits; the next page goes on from there. */
async function searched(store: Store, { limit, after: from, ...query }: JobsQuery) {
  const until = performance.now() + SEARCH_TIME
  const found: ListedRecord[] = []
  let after = from
  for (;;) {
    const page = await store.operations.list({ ...query, limit: limit - found.length, ...defined({ after }) })
    found.push(...page.jobs)
    after = page.next ?? undefined
    if (found.length >= limit) return { found, next: found.at(-1)?.cursor ?? null, isPart: false }
    if (after === undefined) return { found, next: null, isPart: false }
    if (performance.now() > until) return { found, next: after, isPart: true }
  }
}

export async function job(call: Call, body: object): Promise<JobPage> {
  const { id } = checkOptions<{ id: string }>(body as { id: string }, { id: isJob }, 'job', ['id'])
  const { record, may } = await call.job(id)
  const [reason, others] = await Promise.all([why(call, id), relatives(call, id)])
  return { ...jobPage(record, may, call.context.redaction, reason), relatives: others }
}

/** The workers, each with what it runs. */
export async function workers(call: Call, body: object): Promise<{ workers: WorkerRow[] }> {
  checkOptions(body, {}, 'workers')
  const { store } = internalsOf(call.pond)
  const all = (await call.pond.workers()).filter(({ queue: name }) => call.caller.may(call.store, name) !== undefined)
  const names = [...new Set(all.map(({ queue: name }) => name))].slice(0, 100)
  const running = store.capabilities.lists
    ? await Promise.all(
        names.map((name) => store.operations.list({ queue: name, state: 'running', limit: MAX_RUNNING })),
      )
    : []
  const byWorker = Map.groupBy(
    running.flatMap((page) => page.jobs),
    ({ worker }) => worker,
  )
  return {
    workers: all.map(({ since, seen, ...worker }) => {
      const own = (byWorker.get(worker.id) ?? []).filter((record) => record.queue === worker.queue)
      const shown = own.map(({ id, startedAt }) => ({ id, startedAt })).slice(0, 20)
      return { ...worker, since: since.getTime(), seen: seen.getTime(), jobs: shown }
    }),
  }
}
