/** Actions of the command line, for the log that the store keeps. */
import { hostname, userInfo } from 'node:os'
import { actionDone, keepsActions } from '../pond/actions.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import { outcomesOf } from '../values/operations/outcomes.ts'
import type { Opened } from './open.ts'
import type { Terminal } from './terminal.ts'

export type Acted = Omit<ActionEvent, 'who' | 'through' | 'count'> & { count?: number }

export function acted({ pond }: Opened, { through = 'cli' }: Terminal, action: Acted): Promise<void> {
  return actionDone(pond, { who: user(), through, count: 1, ...action })
}

/** The queues of jobs that are about to be changed, by id; none, where nothing is kept. */
export async function queuesOf({ store }: Opened, ids: readonly string[]): Promise<Map<string, string>> {
  if (!keepsActions(store)) return new Map()
  const queues = new Map<string, string>()
  for await (const outcomes of outcomesOf(store, ids)) {
    for (const found of outcomes) if (found !== null) queues.set(found.id, found.queue)
  }
  return queues
}

/** One entry for each queue. */
export async function jobsActed(
  opened: Opened,
  terminal: Terminal,
  action: string,
  changed: readonly string[],
  queues: ReadonlyMap<string, string>,
): Promise<void> {
  const byQueue = Map.groupBy(changed, (id) => queues.get(id))
  for (const [queue, ids] of byQueue) {
    const [id] = ids
    if (queue === undefined || id === undefined) continue
    await acted(opened, terminal, { action, queue, count: ids.length, ...(ids.length === 1 && { id }) })
  }
}

function user(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // The user of a container may have no name.
    return `unknown@${hostname()}`
  }
}
