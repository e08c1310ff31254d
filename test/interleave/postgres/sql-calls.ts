/** The operations as a client's calls of the SQL functions, on a connection that may be in a transaction. See `contract/postgres/README.md`. */

import type pg from 'pg'
import { areAlike } from '../../../src/stores/jobs.ts'
import { hasParents } from '../../../src/stores/lacking.ts'
import { graphValues } from '../../../src/stores/postgres/graphs.ts'
import { JOURNAL, journalValues } from '../../../src/stores/postgres/operations/journal.ts'
import {
  bodiesText,
  type ClaimedList,
  claimedFrom,
  heldValues,
  holdOutcomes,
  jobsText,
  outcomeFrom,
  plainArray,
  storedFence,
  tagged,
  taggedEntry,
  taggedFrom,
  textArray,
} from '../../../src/stores/postgres/wire.ts'
import type { Claimed, ClaimRequest, NewJob } from '../../../src/values/jobs/records.ts'
import type { Calls } from '../operations.ts'
import { clock } from '../world.ts'

/** Rows that hold one answer; bigints come as text. */
type Row = Record<string, unknown>

/** @param listener the name of the process that sleeps */
export function sqlCalls(client: pg.Client, schema: string, listener: string): Calls {
  const rows = async (call: string, values: readonly unknown[]): Promise<Row[]> =>
    (await client.query(`select * from ${schema}.${call} as answer`, [...values])).rows
  const answer = async (call: string, values: readonly unknown[]): Promise<unknown> =>
    (await rows(call, values))[0]?.answer
  const texts = async (call: string, values: readonly unknown[]): Promise<string[] | null> => {
    const found = await answer(call, values)
    return Array.isArray(found) ? found.map(String) : null
  }
  const held = async (call: string, values: readonly unknown[]) => {
    const found = await texts(call, values)
    return found === null ? null : found.map(Number)
  }

  async function claim({ queue, worker, limit, lease, minPriority = 0 }: ClaimRequest, name: string | null) {
    const values = [queue, worker, limit, lease, name, clock.now, minPriority]
    const [row = {}] = await rows('claim($1, $2, $3, $4, $5, $6, $7)', values)
    const list: ClaimedList[] = typeof row.jobs === 'string' ? JSON.parse(row.jobs) : []
    return {
      now: Number(row.at),
      lease: Number(row.holds),
      jobs: list.map(claimedFrom),
      retryAfter: row.retry_after === null ? null : Number(row.retry_after),
      limited: row.limited === true,
      again: row.asleep === true,
    } satisfies Claimed & { again: boolean }
  }

  async function push(jobs: readonly NewJob[], own: boolean, whole = false) {
    const [first] = jobs
    if (first === undefined) return []
    if (whole || jobs.some(hasParents)) return pushGraph(jobs, own, whole)
    const isList = jobs.length > 1 && areAlike(jobs)
    const { queue, priority, delay, runAt, group, attempts, timeout, trace, cost = 1 } = first
    const outcomes = isList
      ? await texts('push_list($1, $2, $3, $4::smallint, $5, $6, $7, $8, $9, $10, $14, $11, $13, false, null, $12)', [
          ...[queue, plainArray(jobs.map(({ id }) => id)), textArray(jobs.map(({ data }) => String(data.body)))],
          ...[priority, delay, runAt, group, attempts, timeout, trace, clock.now, cost, first.fresh === true, own],
        ])
      : await texts('push_jobs($1, $3, $2)', [jobsText(jobs), clock.now, own])
    return outcomes?.map(outcomeFrom) ?? jobs.map(({ id }) => ({ status: 'pushed' as const, id }))
  }

  /** Single ones go job by job. */
  async function pushGraph(jobs: readonly NewJob[], own: boolean, whole: boolean) {
    const graph = jobs.length > 1 ? graphValues(jobs) : undefined
    const outcomes =
      graph === undefined
        ? await texts('push_graph($1, $3, $2, false, null, $4)', [jobsText(jobs), clock.now, own, whole])
        : await texts('push_graph_list($1, $2, $3, $4, $5, $6, $7, $8, $10, $9, false, null, $11)', [
            ...graph,
            ...[clock.now, own, whole],
          ])
    return outcomes?.map(outcomeFrom) ?? jobs.map(({ id }) => ({ status: 'pushed' as const, id }))
  }

  return {
    async configure({ queue, by = 'code', clear = [], ...settings }) {
      await answer('configure($1, $2, $3, $4)', [queue, JSON.stringify(settings), by, textArray(clear)])
      return []
    },
    async limitGroup({ queue, group, limits }) {
      await answer('limit_group($1, $2, $3)', [queue, group, limits === null ? null : JSON.stringify(limits)])
    },
    push: ({ jobs, whole }) => push(jobs, true, whole),
    pushInTransaction: ({ jobs }) => push(jobs, false),
    claim: (request) => claim(request, null),
    sleep: (request) => claim(request, listener),
    async complete({ queue, items }) {
      const results = bodiesText(items.map(({ result }) => result))
      return holdOutcomes(
        items,
        await held('complete($1, $2, $3, $4, null, $5)', [queue, ...heldValues(items), results, clock.now]),
      )
    },
    async fail({ queue, items }) {
      const sent = items.map(({ id, fence, error, delay }) => ({
        id,
        fence: storedFence(fence),
        error: JSON.stringify(error),
        delay,
      }))
      const outcomes = (await texts('fail($1, $2, $3)', [queue, JSON.stringify(sent), clock.now])) ?? []
      return outcomes.map((outcome) => (outcome === 'retry' || outcome === 'dead' ? outcome : 'stale'))
    },
    async release({ queue, items }) {
      if (items.some(({ park }) => park !== undefined)) {
        const sent = items.map(({ id, fence, park }) => ({
          ...{ ...park, id, fence: storedFence(fence), log: null },
          entries: park?.entries.map(taggedEntry) ?? [],
        }))
        const outcomes = (await texts('park($1, $2, $3)', [queue, JSON.stringify(sent), clock.now])) ?? []
        return outcomes.map((outcome) => (outcome === 'ok' || outcome === 'full' ? outcome : 'stale'))
      }
      const pauses = plainArray(items.map(({ pause }) => pause ?? 0))
      return holdOutcomes(
        items,
        await held('release($1, $2, $3, $4, null, $5)', [queue, ...heldValues(items), pauses, clock.now]),
      )
    },
    async extend({ queue, lease, items }) {
      const reports = bodiesText(items.map(({ progress }) => progress))
      const values = [queue, lease, ...heldValues(items), reports, clock.now]
      const outcomes = (await texts('extend($1, $2, $3, $4, $5, null, $6)', values)) ?? []
      return outcomes.map((outcome) => (outcome === 'ok' || outcome === 'cancelled' ? outcome : 'stale'))
    },
    async cancel({ ids }) {
      const outcomes = (await texts('cancel($1, $2)', [plainArray(ids), clock.now])) ?? []
      return outcomes.map((outcome) => (outcome === '' ? null : 'cancelled'))
    },
    async update({ items }) {
      await answer('update($1, $2)', [JSON.stringify(items), clock.now])
      return []
    },
    async remove(request) {
      const values =
        'ids' in request
          ? [plainArray(request.ids), null, null, null]
          : [null, request.queue, request.state ?? null, request.limit]
      await answer('remove($1, $2, $3, $4, $5)', [...values, clock.now])
      return { removed: 0, more: false }
    },
    async restore({ records }) {
      await answer('restore($1, $2)', [JSON.stringify(records.map(taggedFrom)), clock.now])
      return []
    },
    async heartbeat({ workers, gone }) {
      const known = await answer('heartbeat($1, $2, $3)', [JSON.stringify(workers), textArray(gone), clock.now])
      return Array.isArray(known) ? known.map(Boolean) : []
    },
    async settings({ queue }) {
      await answer('settings($1)', [queue])
    },
    async journal({ queue, items }) {
      const outcomes = (await texts(JOURNAL, journalValues({ queue, items }))) ?? []
      return outcomes.map((outcome) => (outcome === 'ok' || outcome === 'full' ? outcome : 'stale'))
    },
    async signal({ items }) {
      const sent = items.map((item) => ({ ...item, ...taggedEntry(item) }))
      const outcomes = (await texts('signal_jobs($1, true, $2)', [JSON.stringify(sent), clock.now])) ?? []
      return outcomes.map((outcome) => ({ status: outcome.startsWith('ok ') ? 'ok' : 'none', id: null }))
    },
    async requeue(request) {
      if ('ids' in request && request.forget !== undefined) {
        await answer('requeue_from($1, $2, $3)', [plainArray(request.ids), request.forget, clock.now])
        return
      }
      const values =
        'ids' in request
          ? [plainArray(request.ids), null, null, clock.now, null]
          : [null, request.queue, request.limit, clock.now, request.until ?? null]
      await answer('requeue($1, $2, $3, $4, $5)', values)
    },
    async fire({ firings }) {
      const sent = firings.map(({ jobs, ...firing }) => ({ ...firing, jobs: JSON.parse(jobsText(jobs)) }))
      // As a client does: what is held fires later.
      await client.query(`select set_config('lock_timeout', '50ms', true)`)
      const outcomes = await answer('fire($1, $2)', [JSON.stringify(sent), clock.now])
      await client.query(`select set_config('lock_timeout', '0', true)`)
      const isFired = (outcome: unknown) => JSON.stringify(outcome).includes('"fired"')
      return firings.map((_, at) =>
        Array.isArray(outcomes) && isFired(outcomes[at]) ? { status: 'fired', jobs: [] } : { status: 'stale' },
      )
    },
    async declare({ schedules }) {
      const items = schedules.map((each) => ({ ...each, job: { ...each.job, data: tagged(each.job.data) } }))
      await answer('declare_schedules($1, $2)', [JSON.stringify(items), clock.now])
      return []
    },
    async pauseSchedule({ name, paused }) {
      return (await answer('pause_schedule($1, $2, $3)', [name, paused, clock.now])) === true
    },
    async bulk({ queue, state, change, limit, filter }) {
      const priority = change.kind === 'update' ? (change.priority ?? null) : null
      const values = [
        queue,
        state,
        change.kind,
        limit,
        null,
        JSON.stringify(filter ?? {}),
        null,
        priority,
        null,
        clock.now,
      ]
      await answer('bulk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', values)
      return { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: clock.now }
    },
    async sweep({ limit }) {
      await answer('sweep($1, $2)', [limit, clock.now])
    },
  }
}
