/** The log of actions: who did what, in the store for 90 days; see contract/actions.md. */

import type { Store } from '../store.ts'
import { encode, MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import { newId } from '../values/jobs/ids.ts'
import { jobInfo } from '../values/jobs/job.ts'
import type { JobRecord } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { internalsOf } from './internals.ts'

export const ACTIONS_QUEUE = 'millpond.actions'
/** Whether a list of queues for people and metrics has it. The log is told of where its queue is asked for by name. */
export const isShown = ({ queue }: { queue: string }): boolean => queue !== ACTIONS_QUEUE

/** Milliseconds after which a process gives the queue its keeping time again: somebody may have removed the queue. */
const CONFIGURED = 60_000

const configured = new WeakMap<Store, number>()

/** An entry of the log. */
export interface KeptAction extends ActionEvent {
  /** Milliseconds since 1970. */
  at: number
}

/** Whether the store can keep actions. */
export const keepsActions = ({ capabilities }: Store): boolean => capabilities.restore && capabilities.lists

/**
 * Tells of an action, and keeps it. Never rejects: the action is done, so what cannot be kept is told of by the event
 * `error`.
 * @param pond a `Millpond`
 */
export async function actionDone(pond: object, event: ActionEvent): Promise<void> {
  const { store, events } = internalsOf(pond)
  events.emit('action', event)
  const isNothing = event.count === 0 && event.action.endsWith('All')
  if (isNothing || !keepsActions(store)) return
  try {
    await keep(store, event)
  } catch (error) {
    if (!isMillpondError(error)) throw error
    events.trouble(error)
  }
}

async function keep(store: Store, event: ActionEvent): Promise<void> {
  const { operations } = store
  const now = Date.now()
  if ((configured.get(store) ?? 0) < now - CONFIGURED) {
    await operations.configure({ queue: ACTIONS_QUEUE, keepDone: DEFAULTS.actions.keep })
    configured.set(store, now)
  }
  await operations.restore({ records: [recordOf(event, now)] })
}

function recordOf({ who, ...event }: ActionEvent, now: number): JobRecord {
  return {
    ...{ id: newId(), queue: ACTIONS_QUEUE, state: 'done', group: event.queue, key: null },
    ...{ priority: 4, attempt: 0, attempts: 1, fence: 0, cost: 1, timeout: null, trace: null, worker: null },
    ...{ pushedAt: now, dueAt: now, startedAt: now, finishedAt: now },
    // A name may come from anywhere.
    data: encode({ who: who.slice(0, 200).toWellFormed(), ...event }, 'the entry of an action', MAX_PAYLOAD),
    ...{ progress: null, result: null, error: null },
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText)
const OPTIONAL = { id: isText, schedule: isText, group: isText, settings: isTexts, detail: isText }
const THROUGH: readonly unknown[] = ['dashboard', 'http', 'cli', 'mcp'] satisfies ActionEvent['through'][]

/** undefined: it is something else. */
export function keptAction(record: JobRecord): KeptAction | undefined {
  const { data, finishedAt } = jobInfo(record)
  if (typeof data !== 'object' || data === null || finishedAt === null) return undefined
  const given = data as Record<string, unknown>
  const { who, through, action, queue, count } = given
  if (!isText(who) || !isText(action) || !isText(queue) || !Number.isSafeInteger(count) || !THROUGH.includes(through)) {
    return undefined
  }
  // Whoever may see the group's entries may see no other queue's.
  if (queue !== record.group) return undefined
  const more = Object.entries(OPTIONAL).filter(([name, isRight]) => isRight(given[name]))
  return {
    ...{
      at: finishedAt.getTime(),
      who,
      through: through as ActionEvent['through'],
      action,
      queue,
      count: Number(count),
    },
    ...Object.fromEntries(more.map(([name]) => [name, given[name]])),
  }
}
