import type { BackoffPolicy, Completion, FailOutcome, Failure, Hold, HoldOutcome } from '../../../store.ts'
import { delayAfter } from '../../../values/backoff.ts'
import { integer, stateFrom, text } from '../connection/values.ts'
import type { Context } from '../queues.ts'
import type { CompletionList } from '../wire.ts'

interface Completions {
  queue: string
  completions: CompletionList | readonly Completion[]
}

/** @returns the indexes of the stale ones, of which there are seldom any */
export function complete(context: Context, { queue, completions }: Completions): number[] {
  if (!('held' in completions)) return completeEach(context, queue, completions)
  if (completeList(context, queue, completions)) return []
  const rows = context.statements.get('complete/each').all({ held: completions.held })
  const each = rows.map(({ id, fence }): Completion => ({ id: text(id), fence: integer(fence), result: null }))
  return completeEach(context, queue, each)
}

/** False, and nothing is done, if any is stale: which ones is only seen one by one. */
function completeList({ statements, queues, now }: Context, name: string, { count, held }: CompletionList): boolean {
  const queue = queues.find(name)
  if (queue === null) return false
  const all = queue.keeps('done')
    ? () => statements.get('complete/keep_list').run({ queue: name, held, now })
    : () => statements.get('complete/remove_list').run({ queue: name, held })
  if (!statements.inSavepoint(() => all() === count)) return false
  queue.finish('running', 'done', [], count)
  return true
}

function completeEach(
  { statements, queues, now }: Context,
  name: string,
  completions: readonly Completion[],
): number[] {
  const queue = queues.find(name)
  const keep = queue?.keeps('done') === true ? statements.get('complete/keep') : null
  const remove = statements.get('complete/remove')
  const stale: number[] = []
  for (const [at, { id, fence, result }] of completions.entries()) {
    const hold = { queue: name, id, fence }
    const kept = { ...hold, now, encoding: result?.encoding ?? null, result: result?.body ?? null }
    const changed = keep?.run(kept) ?? remove.run(hold)
    if (changed === 1) queue?.finish('running', 'done', [id])
    else stale.push(at)
  }
  return stale
}

export function fail(
  context: Context,
  { queue: name, failures }: { queue: string; failures: readonly Failure[] },
): FailOutcome[] {
  const { statements, queues, now } = context
  const queue = queues.find(name)
  return failures.map(({ id, fence, error, delay: asked }) => {
    const hold = { queue: name, id, fence }
    const delay = asked === 'backoff' ? backoffDelay(context, hold) : asked
    const row = statements.get('fail/fail').get({ ...hold, now, delay, error: JSON.stringify(error) })
    if (row === undefined || queue === null) return 'stale'
    const state = stateFrom(row.state)
    if (state !== 'dead') {
      queue.move('running', state)
      return 'retry'
    }
    queue.finish('running', 'dead', [id])
    if (!queue.keeps('dead')) statements.get('fail/remove').run({ id })
    return 'dead'
  })
}

/** Null where the claim is stale. */
function backoffDelay({ statements }: Context, hold: { queue: string; id: string; fence: number }): number | null {
  const row = statements.get('fail/attempt').get(hold)
  if (row === undefined) return null
  const policy: BackoffPolicy = {
    base: integer(row.backoff_base),
    factor: integer(row.backoff_factor),
    max: integer(row.backoff_max),
    jitter: integer(row.backoff_jitter),
  }
  return delayAfter(policy, integer(row.attempt), Math.random())
}

export function release(
  { statements, queues }: Context,
  { queue, holds }: { queue: string; holds: readonly Hold[] },
): HoldOutcome[] {
  return holds.map(({ id, fence }) => {
    if (statements.get('release/release').run({ queue, id, fence }) === 0) return 'stale'
    queues.find(queue)?.move('running', 'waiting')
    return 'ok'
  })
}
