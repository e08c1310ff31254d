/**
 * The alerts that fire now, of `millpond/alerts`: their states are the progress of the job that is the right to look, as
 * entries `["QUEUE RULE", { phase, since, above }]`.
 */
import type { JobRecord, Store } from '../store.ts'
import { jobInfo } from '../values/job.ts'
import type { Attention } from './views.ts'

/** The queue of that job. */
export const ALERTS_QUEUE = 'millpond/alerts/watch'

/** Most that are shown. */
const MAX_ALERTS = 100

export async function firingAlerts({ operations, capabilities }: Store): Promise<Attention[]> {
  if (!capabilities.lists) return []
  const { jobs } = await operations.list({ queue: ALERTS_QUEUE, state: 'running', limit: 1 })
  return jobs.flatMap(alertsOf).slice(0, MAX_ALERTS)
}

function alertsOf(record: JobRecord): Attention[] {
  const { progress } = jobInfo(record)
  return Array.isArray(progress) ? progress.flatMap(alertOf) : []
}

/** Nothing, where the entry is something else, or the alert does not fire. */
function alertOf(entry: unknown): Attention[] {
  if (!Array.isArray(entry)) return []
  const [key, state]: unknown[] = entry
  if (typeof key !== 'string' || typeof state !== 'object' || state === null || !('phase' in state)) return []
  const [, queue, rule] = /^(\S+) (.*)$/s.exec(key) ?? []
  const isFiring = state.phase === 'firing' || state.phase === 'recovering'
  if (queue === undefined || rule === undefined || !isFiring) return []
  const text = `alert ${rule}${state.phase === 'recovering' ? ', recovering' : ''}`
  return [{ queue, kind: 'alert', level: 'alarm', text }]
}
