/**
 * The alerts of `millpond/alerts`: the progress of the job that is the right to look has the rules, and the states as entries
 * `["QUEUE RULE", { phase, since, above }]`. Jobs of another queue are what people are told.
 */

import { internalsOf } from '../pond/internals.ts'
import type { Store } from '../store.ts'
import { jobInfo } from '../values/jobs/job.ts'
import type { JobRecord, JobState } from '../values/jobs/records.ts'
import { checkOptions } from '../values/options/options.ts'
import type { Call } from './context.ts'
import type { AlertRow, AlertsPage, Attention, DeliveryRow } from './views.ts'

/** The queue of that job, and that of those jobs. */
export const ALERTS_QUEUE = 'millpond/alerts/watch'
const TOLD_QUEUE = 'millpond/alerts'

/** Most that are shown. */
const MAX_ALERTS = 100
const MAX_RULES = 200
const MAX_TOLD = 100

interface Watched {
  rules: AlertRow[]
  states: { rule: string; queue: string; phase: string; since: number; above: number }[]
}

export async function firingAlerts(store: Store): Promise<Attention[]> {
  const { states } = (await watched(store)) ?? { states: [] }
  const firing = states.filter(({ phase }) => phase === 'firing' || phase === 'recovering')
  return firing.slice(0, MAX_ALERTS).map(({ queue, rule, phase }) => {
    const text = `alert ${rule}${phase === 'recovering' ? ', recovering' : ''}`
    return { queue, kind: 'alert', level: 'alarm', text }
  })
}

/** The rules with the states of queues that the caller may see, and who was told lately. */
export async function alerts(call: Call, body: object): Promise<AlertsPage> {
  checkOptions(body, {}, 'alerts')
  const { store } = internalsOf(call.pond)
  const sees = (queue: string) => call.caller.may(call.store, queue) !== undefined
  const found = await watched(store)
  if (found === undefined) return { rules: null, told: [] }
  const told = (await deliveries(store)).filter(({ queue }) => sees(queue))
  const rules = found.rules.flatMap((rule): AlertRow[] => {
    if (rule.queue !== null && !sees(rule.queue)) return []
    const states = found.states.filter((state) => state.rule === rule.name && sees(state.queue))
    return [{ ...rule, states: states.map(({ rule: _, ...state }) => state) }]
  })
  return { rules, told }
}

/** undefined: no process looks at any rules, or has yet. */
async function watched({ operations, capabilities }: Store): Promise<Watched | undefined> {
  if (!capabilities.lists) return undefined
  // Between two processes it waits.
  for (const state of ['running', 'waiting', 'scheduled'] as const) {
    const { jobs } = await operations.list({ queue: ALERTS_QUEUE, state, limit: 1 })
    const [record] = jobs
    if (record !== undefined) return watchedIn(jobInfo(record).progress)
  }
  return undefined
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'
const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** What has another shape is left out: any program may have written it. */
function watchedIn(progress: unknown): Watched {
  const { rules, states } = fieldsOf(progress)
  return { rules: listOf(rules).slice(0, MAX_RULES).flatMap(ruleOf), states: listOf(states).flatMap(stateOf) }
}

function ruleOf(given: unknown): AlertRow[] {
  const { name, queue = null, metric, above, for: lasting, resolveAfter } = fieldsOf(given)
  if (!isText(name) || !(queue === null || isText(queue)) || !isText(metric)) return []
  if (!isNumber(above) || !isNumber(lasting) || !isNumber(resolveAfter)) return []
  return [{ name, queue, metric, above, for: lasting, resolveAfter, states: [] }]
}

function stateOf(entry: unknown): Watched['states'] {
  const [key, state] = listOf(entry)
  const [, queue, rule] = (isText(key) && /^(\S+) (.*)$/s.exec(key)) || []
  const { phase, since, above } = fieldsOf(state)
  if (queue === undefined || rule === undefined || !isText(phase) || !isNumber(since) || !isNumber(above)) return []
  return [{ rule, queue, phase, since, above }]
}

/** Newest first; those that are still under way before all. */
async function deliveries({ operations }: Store): Promise<DeliveryRow[]> {
  const states: JobState[] = ['running', 'waiting', 'scheduled', 'done', 'dead']
  const pages = await Promise.all(states.map((state) => operations.list({ queue: TOLD_QUEUE, state, limit: MAX_TOLD })))
  const rows = pages.flatMap(({ jobs }) => jobs.flatMap(deliveryOf))
  return rows.sort((a, b) => (b.at ?? Number.MAX_SAFE_INTEGER) - (a.at ?? Number.MAX_SAFE_INTEGER)).slice(0, MAX_TOLD)
}

function deliveryOf(record: JobRecord): DeliveryRow[] {
  const { rule, queue, state: turn } = fieldsOf(jobInfo(record).data)
  if (!isText(rule) || !isText(queue) || !(turn === 'firing' || turn === 'resolved')) return []
  const { id, state, finishedAt, attempt, error } = record
  return [{ id, rule, queue, turn, state, at: finishedAt, attempt, code: error?.code ?? null }]
}
