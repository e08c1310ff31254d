/** Pushes. Jobs that wait for others, and those that are stored together or not at all, go by `../graph-push.ts`. */
import type { Input } from '../../../store.ts'
import type { NewJob, PushOutcome } from '../../../values/jobs/records.ts'
import { linkArrived } from '../awaited.ts'
import type { StoreContext } from '../context.ts'
import { pushGraph } from '../graph-push.ts'
import { pushBy } from '../pusher.ts'

const hasLinks = ({ after = [], partOf }: NewJob): boolean => after.length > 0 || (partOf ?? null) !== null

/** What was stored of a push that failed is found there when the push is repeated. */
export async function push(context: StoreContext, { jobs, whole = false }: Input<'push'>): Promise<PushOutcome[]> {
  context.calls.assertOpen()
  const isGraph = whole || jobs.some(hasLinks)
  const outcomes = await (isGraph ? pushGraph(context, jobs, whole) : pushBy(context, jobs, { name: 'push' }))
  const [first] = outcomes
  if (first?.error !== undefined && outcomes.every(({ status }) => status === 'failed')) throw first.error
  if (context.awaitedCount > 0) {
    const pushed = outcomes.flatMap(({ status, id }) => (status === 'pushed' ? [id] : []))
    await linkArrived(context, pushed)
  }
  return outcomes
}
