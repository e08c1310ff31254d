import type { Completion, FailOutcome, Failure, HoldOutcome, Release } from '../../../store.ts'
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
  const list = statements.get(queue?.keeps('done') ? 'complete/keep_list' : 'complete/remove_list')
  if (!statements.inSavepoint(() => list.run({ queue: name, held, now }) === count)) return false
  queue?.finish('running', 'done', [], count)
  return true
}

function completeEach(
  { statements, queues, now }: Context,
  name: string,
  completions: readonly Completion[],
): number[] {
  const queue = queues.find(name)
  const statement = statements.get(queue?.keeps('done') ? 'complete/keep' : 'complete/remove')
  return completions.flatMap(({ id, fence, result }, at) => {
    const ended = { encoding: result?.encoding ?? null, result: result?.body ?? null }
    if (statement.run({ queue: name, id, fence, now, ...ended }) === 0) return [at]
    queue?.finish('running', 'done', [id])
    return []
  })
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
  const of = (name: string): number => integer(row[`backoff_${name}`])
  const policy = { base: of('base'), factor: of('factor'), max: of('max'), jitter: of('jitter') }
  return delayAfter(policy, integer(row.attempt), Math.random())
}

export function release(
  { statements, queues, now }: Context,
  { queue, releases }: { queue: string; releases: readonly Release[] },
): HoldOutcome[] {
  return releases.map(({ id, fence, pause = 0 }) => {
    const limits = queues.find(queue)?.limits
    if (pause > 0 || limits?.rate || limits?.grouped) {
      queues.write()
      for (const name of pause > 0 ? ['pause', 'pause_group'] : ['give_back', 'give_back_group']) {
        statements.get(`release/${name}`).run({ queue, id, fence, now, pause })
      }
    }
    if (statements.get('release/release').run({ queue, id, fence }) === 0) return 'stale'
    queues.find(queue)?.move('running', 'waiting')
    return 'ok'
  })
}
