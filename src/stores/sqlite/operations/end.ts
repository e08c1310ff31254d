import type { OfQueue } from '../../../store.ts'
import type { FailOutcome, Failure, Release, ReleaseOutcome } from '../../../values/jobs/records.ts'
import { delayAfter } from '../../../values/settings/backoff.ts'
import { integer, stateFrom } from '../connection/values.ts'
import { addLog } from '../job-log.ts'
import { keysOf } from '../once.ts'
import type { StoreContext } from '../queues.ts'
import { Endings } from '../settle.ts'
import type { PackedCompletions } from '../wire.ts'
import { park } from './journal.ts'

/** @returns the indexes of those that are stale */
export function complete(context: StoreContext, completions: PackedCompletions): number[] {
  const { statements, queues, now } = context
  const { queue: name, ids, fences, results, logs } = completions
  const queue = queues.find(name)
  const isKept = queue?.keeps('done') ?? false
  const statement = isKept ? 'complete/keep' : 'complete/remove'
  for (const [at, lines] of logs?.entries() ?? []) {
    addLog(statements, { queue: name, id: ids[at] ?? '', fence: fences[at] ?? 0 }, lines)
  }
  const leaveKey = keysOf(context, queue, ids)
  const endings = new Endings(context)
  endings.look(queue, ids)
  const isDone = completeList(context, `${statement}_list`, completions)
  const completeOne = (id: string, at: number): boolean => {
    const { encoding = null, body: result = null } = results?.[at] ?? {}
    return statements.run(statement, { queue: name, id, fence: fences[at] ?? 0, now, encoding, result }) === 1
  }
  const stale: number[] = []
  for (const [at, id] of ids.entries()) {
    if (isDone || completeOne(id, at)) {
      queue?.finish('running', 'done', id)
      leaveKey(id, true)
      endings.ended(id, 'done', isKept)
    } else stale.push(at)
  }
  endings.settle()
  return stale
}

/** False, and nothing is done, if any has a result or is stale: which ones is only seen one by one. */
function completeList(
  { statements, now }: StoreContext,
  statement: string,
  { queue, ids, fences, results }: PackedCompletions,
): boolean {
  if (ids.length === 1 || results !== null) return false
  // Written by hand: an object would lose an id that is there twice.
  const held = `{${ids.map((id, at) => `${JSON.stringify(id)}:${fences[at]}`).join(',')}}`
  statements.run('savepoint/begin')
  const isDone = statements.run(statement, { queue, held, now }) === ids.length
  if (!isDone) statements.run('savepoint/undo')
  statements.run('savepoint/end')
  return isDone
}

export function fail(context: StoreContext, { queue: name, items }: OfQueue<Failure>): FailOutcome[] {
  const { statements, queues, now } = context
  const queue = queues.find(name)
  const endings = new Endings(context)
  const outcomes = items.map(({ id, fence, error, delay: asked, log }): FailOutcome => {
    const hold = { queue: name, id, fence }
    addLog(statements, hold, log)
    const delay = asked === 'backoff' ? backoffDelay(context, hold) : asked
    const row = statements.get('fail/fail', { ...hold, now, delay, error: JSON.stringify(error) })
    if (row === undefined || queue === undefined) return 'stale'
    queue.count('total', 'failed', 1)
    const state = stateFrom(row.state)
    if (state !== 'dead') {
      queue.move('running', state, 1, delay ?? undefined)
      return 'retry'
    }
    queue.finish('running', 'dead', id)
    keysOf(context, queue, [id])(id, true)
    endings.look(queue, [id])
    endings.ended(id, 'dead', queue.keeps('dead'))
    if (!queue.keeps('dead')) statements.run('fail/remove', { id })
    return 'dead'
  })
  endings.settle()
  return outcomes
}

/** Null where the claim is stale. */
function backoffDelay({ statements }: StoreContext, hold: { queue: string; id: string; fence: number }): number | null {
  const row = statements.get('fail/attempt', hold)
  if (row === undefined) return null
  const of = (name: string): number => integer(row[`backoff_${name}`])
  const policy = { base: of('base'), factor: of('factor'), max: of('max'), jitter: of('jitter') }
  return delayAfter(policy, integer(row.attempt), Math.random())
}

export function release(context: StoreContext, { queue: name, items }: OfQueue<Release>): ReleaseOutcome[] {
  const { statements, queues, now } = context
  return items.map(({ id, fence, pause = 0, log, park: waits }) => {
    const hold = { queue: name, id, fence }
    addLog(statements, hold, log)
    if (waits !== undefined) return park(context, hold, waits)
    const settings = queues.find(name)?.settings
    if (pause > 0 || settings?.isBounded || settings?.isGrouped) {
      queues.write()
      for (const step of pause > 0 ? ['pause', 'pause_group'] : ['give_back', 'give_back_group']) {
        statements.run(`release/${step}`, { ...hold, now, pause })
      }
    }
    if (statements.run('release/release', hold) === 0) return 'stale'
    const queue = queues.find(name)
    queue?.move('running', 'waiting')
    queue?.count('total', 'released', 1)
    return 'ok'
  })
}
