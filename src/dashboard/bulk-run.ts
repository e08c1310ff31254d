/** Bulk changes by pages of the list. */
import type { Millpond } from '../pond/millpond.ts'
import type { BulkBody } from './views.ts'

const PAGE = 500
/** Jobs that a preview counts. */
const MAX_COUNTED = 10_000

interface Progress {
  looked: number
  total: number
  changed: number
}

export async function bulkPreview(pond: Millpond, { queue: name, search }: BulkBody, signal: AbortSignal) {
  const queue = pond.queue(name)
  const { state, ...filter } = search
  const ids: string[] = []
  let count = 0
  let after: string | undefined
  do {
    const page = await queue.jobs(state, { ...filter, limit: PAGE, after })
    count += page.length
    ids.push(...page.slice(0, 10 - ids.length).map(({ id }) => id))
    after = page.length < PAGE ? undefined : page.at(-1)?.cursor
  } while (after !== undefined && count < MAX_COUNTED && !signal.aborted)
  return { count, isEstimate: after !== undefined, ids, from: null }
}

export async function bulkChange(
  pond: Millpond,
  { queue: name, action, search }: BulkBody,
  signal: AbortSignal,
  told: (progress: Progress) => void,
): Promise<Progress> {
  const queue = pond.queue(name)
  const { state, ...filter } = search
  const total = (await queue.stats()).counts[state]
  const progress = { looked: 0, total, changed: 0 }
  let after: string | undefined
  do {
    const page = await queue.jobs(state, { ...filter, limit: PAGE, after })
    const ids = page.map(({ id }) => id)
    if (action === 'requeue') progress.changed += await queue.requeue(ids)
    else if (action === 'remove') progress.changed += await queue.remove(ids)
    else {
      for (const id of ids) {
        const outcome = action === 'cancel' ? await pond.cancel(id) : await queue.update(id, { delay: 0 })
        if (outcome === 'updated' || outcome === 'cancelled') progress.changed++
      }
    }
    progress.looked += page.length
    told({ ...progress })
    after = page.length < PAGE ? undefined : page.at(-1)?.cursor
  } while (after !== undefined && !signal.aborted)
  return progress
}
