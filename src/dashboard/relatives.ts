/** The jobs that a job waits for, and those that wait for it, as the page shows them. */

import { internalsOf } from '../pond/internals.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { JobState } from '../values/jobs/records.ts'
import type { Call } from './context.ts'
import type { RelativesView, RelativeView } from './views.ts'

/** Jobs of each side that are shown, of so many that are looked at. */
const MAX_SHOWN = 20
const LOOKED_AT = 200
const MAX_COUNTED = 10_000
/** Jobs that are named in a sentence. */
const FEW = 3
/** What a graph stands still for comes first. */
const FIRST: readonly JobState[] = ['dead', 'cancelled', 'running', 'waiting', 'scheduled', 'blocked', 'done']

/** null: the job has none, or the store knows of none. */
export async function relatives(call: Call, id: string): Promise<RelativesView | null> {
  const { operations, capabilities } = internalsOf(call.pond).store
  if (!capabilities.graphs) return null
  const [found] = await operations.relatives({ ids: [id], limit: MAX_COUNTED })
  if (!found || found.parents.length + found.children.length === 0) return null
  const looked = [found.parents, found.children].flatMap((ids) => ids.slice(0, LOOKED_AT))
  const told = await operations.relatives({ ids: looked, limit: 1 })
  const views = new Map<string, RelativeView>()
  for (const [at, one] of told.entries()) {
    const other = looked[at] ?? ''
    // Of a queue that the caller may not see, not even the name is told.
    if (one && call.caller.may(call.store, one.queue) != null) views.set(other, { id: other, ...only(one) })
  }
  const side = (ids: readonly string[]) => {
    const seen = ids.slice(0, LOOKED_AT).flatMap((other) => views.get(other) ?? [])
    seen.sort((a, b) => FIRST.indexOf(a.state) - FIRST.indexOf(b.state))
    return { shown: seen.slice(0, MAX_SHOWN), count: ids.length }
  }
  return { parents: side(found.parents), children: side(found.children), more: found.more }
}

const only = ({ queue, state }: Omit<RelativeView, 'id'>) => ({ queue, state })

/** Why a job does not run, as far as the caller may know; null: the store cannot tell. */
export async function why({ pond, caller, store }: Call, id: string): Promise<string | null> {
  try {
    const told = await pond.explain(id)
    if (told === undefined) return null
    const reasons = told.reasons.filter((reason) => reason.kind === 'parents')
    const [only] = told.reasons
    // Their ids would fill the page, and the graph has them.
    if (only?.kind === 'parents' && only.jobs > FEW) return `Job ${id} waits: ${only.jobs} jobs have not ended.`
    const isSeen = reasons.every(({ parents }) => parents.every(({ queue }) => caller.may(store, queue) != null))
    return isSeen ? told.text : `Job ${id} waits for other jobs, of which you may not see all.`
  } catch (error) {
    if (isMillpondError(error, 'NotSupported')) return null
    throw error
  }
}
