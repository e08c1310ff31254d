/**
 * One process at a time looks at the rules. The right to look is a job of the queue `millpond/alerts/watch`, which has a
 * key, so there is one at most. The process whose worker has claimed it goes on looking until it stops, and then gives it
 * back. Its lease and its fence see to it that no second one holds it: a process that was killed loses it with its lease.
 *
 * The job's progress is `{ rules, states, untold, note }`. The states are those of the alerts, so the next process goes on where
 * this one stopped; the rules are there for dashboards. Nothing is told before it is noted there:
 *
 *   an alert turns ──noted, with its new state──► untold ──pushed──► told
 *                                                   └─ the process dies or stalls: the next one pushes it
 *
 * A process that has lost the job can note nothing. So no alert is told of which the next process knows nothing, and one that two
 * processes push has the same id.
 */
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { Job } from '../values/jobs/job.ts'
import type { Context } from '../worker/context.ts'
import type { Outcome } from '../worker/outcome.ts'
import { type AlertState, advance } from './course.ts'
import { Readings } from './readings.ts'
import type { AlertMetric, CheckedRule } from './rules.ts'

/** What people are told. */
export interface Alert {
  /** The rule's name. */
  rule: string
  queue: string
  state: 'firing' | 'resolved'
  metric: AlertMetric
  /** What was read last; times are in milliseconds. null: there is nothing to read any more. */
  value: number | null
  /** Of the rule, in the same unit. */
  above: number
  /** Since when it was above, as an ISO time. */
  since: string
}

/** Alerts that are not quiet, at most: they are kept as the progress of one job. */
const MAX_STATES = 1000
/** Milliseconds that one telling may take, so that a function that hangs does not hold up the next alert. */
const TELL_TIMEOUT = 60_000

interface Watch {
  pond: Millpond
  /** Its jobs are what people are told. */
  told: Queue<Alert>
  rules: readonly CheckedRule[]
  /** Milliseconds between two looks. */
  every: number
  stopping: AbortSignal
  onError: (error: unknown) => void
}

type States = Map<string, AlertState>

/** What the next process must know. */
interface Noted {
  states: States
  /** Turned, and perhaps not pushed. */
  untold: readonly Alert[]
}

/** Milliseconds between two looks at whether the store has the progress. */
const NOTED_EVERY = 100

/** The handler of the job that is the right to look. It looks until it is told to stop. */
export function watcher({ pond, told, rules, every, stopping, onError }: Watch) {
  return async (job: Job, ctx: Context): Promise<Outcome> => {
    const signal = AbortSignal.any([stopping, ctx.signal])
    const readings = new Readings(pond, rules)
    let noted: Noted | undefined
    /** The store has `noted`, or will have it soon. */
    let isKept = false

    /** Goes along with the lease, so the store takes it only from the process that holds the job. */
    const report = ({ states, untold }: Noted): string => {
      const note = randomUUID()
      // The rules, for dashboards.
      ctx.progress({ rules, states: [...states], untold, note })
      return note
    }

    /** @returns false: the right to look was lost, or is given back, before it was noted */
    const note = async (next: Noted): Promise<boolean> => {
      const expected = report(next)
      while (!signal.aborted) {
        await sleep(NOTED_EVERY, undefined, { signal }).catch(() => {})
        if (noteOf((await pond.job(job.id))?.progress) === expected) return !signal.aborted
      }
      return false
    }

    const tell = async ({ states, untold }: Noted): Promise<Noted> => {
      for (const alert of untold) await push(alert)
      return { states, untold: [] }
    }

    while (!signal.aborted) {
      try {
        noted ??= notedIn((await pond.job(job.id))?.progress)
        noted = await tell(noted)
        const next = await look(readings, noted.states)
        if (signal.aborted) break
        if (next.untold.length > 0) {
          isKept = false
          if (!(await note(next))) break
          noted = next
          noted = await tell(noted)
        }
        noted = { states: next.states, untold: [] }
        if (next.isChanged || !isKept) report(noted)
        isKept = true
      } catch (error) {
        if (!isMillpondError(error) || error.code !== 'Closed') onError(error)
      }
      await sleep(every, undefined, { signal }).catch(() => {})
    }
    return pond.store.capabilities.rates ? ctx.rateLimited(1) : ctx.retry(0, 'the process stops')
  }

  /** Nobody is told that an alert has resolved while it is still being told that it fires, such as by a process that has died. */
  async function push(alert: Alert): Promise<void> {
    const options = { id: idOf(alert), timeout: TELL_TIMEOUT }
    if (alert.state === 'firing' || !pond.store.capabilities.graphs) return void (await told.push(alert, options))
    const after = [idOf({ ...alert, state: 'firing' })]
    await told.push(alert, { ...options, after, onDead: 'run' }).catch((error: unknown) => {
      // It was told so long ago that it is kept no longer.
      if (isMillpondError(error, 'ParentUnknown')) return told.push(alert, options)
      throw error
    })
  }

  async function look(readings: Readings, states: States) {
    const now = Date.now()
    const byQueue = new Map((await readings.read(now)).map((reading) => [reading.queue, reading]))
    const next: States = new Map()
    const untold: Alert[] = []
    let added = 0
    for (const rule of rules) {
      const known = [...states.keys()].map(queueOf(rule)).filter((queue) => queue !== undefined)
      const queues = rule.queue === undefined ? new Set([...byQueue.keys(), ...known]) : [rule.queue]
      for (const queue of queues) {
        const key = keyOf(rule, queue)
        const value = byQueue.get(queue)?.[rule.metric]
        const old = states.get(key)
        const { state, turn } = advance(rule, old, value, now)
        // Beyond the bound a new one waits, quiet, until another is quiet.
        const isNew = state !== undefined && old === undefined
        if (isNew && states.size + added >= MAX_STATES) continue
        if (isNew) added++
        if (state !== undefined) next.set(key, state)
        const since = (state ?? old)?.above ?? now
        if (turn !== undefined) untold.push(alertOf(rule, queue, turn, value, since))
      }
    }
    const isChanged = JSON.stringify([...next]) !== JSON.stringify([...states])
    return { states: next, untold, isChanged }
  }
}

const keyOf = ({ name }: CheckedRule, queue: string): string => `${queue} ${name}`

/** Names of queues hold no space. */
const queueOf = (rule: CheckedRule) => (key: string) => {
  const queue = key.slice(0, key.indexOf(' '))
  return key === keyOf(rule, queue) ? queue : undefined
}

function alertOf(
  { name, metric, above }: CheckedRule,
  queue: string,
  state: Alert['state'],
  value: number | undefined,
  since: number,
): Alert {
  return { rule: name, queue, state, metric, value: value ?? null, above, since: new Date(since).toISOString() }
}

/** The same for the same turn of an alert: should two processes tell of it, the store keeps one. */
function idOf({ rule, queue, state, since }: Alert): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([rule, queue, state, since]))
    .digest('hex')
  // A UUID of version 8, whose content is up to its maker (RFC 9562).
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`
}

/** Of the job's progress; empty where it is something else. */
function notedIn(progress: unknown): Noted {
  const { states, untold } = fieldsOf(progress)
  return {
    states: new Map(Array.isArray(states) ? states.filter(isEntry) : []),
    untold: Array.isArray(untold) ? untold.filter(isAlert) : [],
  }
}

const noteOf = (progress: unknown): unknown => fieldsOf(progress).note

const fieldsOf = (value: unknown): Record<string, unknown> => ({ ...Object(value) })

function isAlert(value: unknown): value is Alert {
  const { rule, queue, state, since } = fieldsOf(value)
  return [rule, queue, since].every((one) => typeof one === 'string') && (state === 'firing' || state === 'resolved')
}

function isEntry(entry: unknown): entry is [string, AlertState] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false
  const state: unknown = entry[1]
  if (typeof state !== 'object' || state === null || !('phase' in state && 'since' in state && 'above' in state))
    return false
  const { phase, since, above } = state
  const isKnown = phase === 'pending' || phase === 'firing' || phase === 'recovering'
  return isKnown && typeof since === 'number' && typeof above === 'number'
}
