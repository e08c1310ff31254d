/**
 * `move`: carries jobs, settings of queues and schedules from one store to another while producers and workers run on both.
 * docs/move.md tells what is kept, and what a kill in the middle leaves.
 */
import '../values/runtime/runtime.ts'
import type { Store } from '../store.ts'
import { assertMigrated, isLasting, openExisting } from '../stores/existing.ts'
import { keepProcessAlive } from '../stores/keep-process-alive.ts'
import { openStore } from '../stores/open.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { dryRun, Mover, wanted } from './mover.ts'
import { checkedMoveOptions, type MoveEnd, type MoveOptions, type MoveReport } from './options.ts'
import { retried, retrying } from './retry.ts'
import { isSameStore } from './same-store.ts'
import { checkSchedules, moveSchedules, schedulesOf } from './schedules.ts'
import { checkSettings, giveSettings } from './settings.ts'
import type { Source } from './source.ts'
import { ClaimSource } from './sources/claims.ts'
import { alsoRivals, isRival, openRival } from './sources/rivals.ts'
import { StoreSource } from './sources/store.ts'
import { Target } from './target.ts'

export type { ErrorCode, MillpondError } from '../values/errors/errors.ts'
export type { LeftJob, MovedQueue, MoveEnd, MoveOptions, MoveReport } from './options.ts'
export type { MoveProgress } from './pace.ts'
export type { Counts } from './source.ts'
export type { LeftReason } from './target.ts'

/**
 * Moves jobs. The same call goes on where an earlier one ended, however it ended.
 * @param source what is at its end is removed there once the target has it
 * @throws InvalidOption: both are the same store, or one is `memory:`. QueueUnknown: the source has no such queue. NotSupported: the
 *   target cannot keep a setting of a queue, or schedules. StoreVersion: the source of a dry run has older tables. Nothing was moved then.
 *   And the errors of both stores. Those that may pass are waited for first, for a minute each
 */
export function move(source: MoveEnd, target: MoveEnd, options?: MoveOptions): Promise<MoveReport> {
  // The connections of stores and rivals keep no process alive.
  return keepProcessAlive(moved(source, target, options))
}

async function moved(source: MoveEnd, target: MoveEnd, options?: MoveOptions): Promise<MoveReport> {
  const checked = checkedMoveOptions(options)
  checked.signal?.throwIfAborted()
  const onTrouble = (error: MillpondError) => checked.onTrouble?.(error)
  const stop = checked.signal ?? new AbortController().signal
  const opened: { close(): Promise<void> }[] = []
  try {
    const { from, store } = await openedSource(source, opened, onTrouble, stop, checked)
    await assertNamed(from, checked.queues)
    if (checked.follow !== true) await assertQueues(from, checked.queues)
    const schedules = store === undefined || checked.settings === false ? [] : await schedulesOf(store, checked.queues)
    if (checked.dryRun === true) return { ...(await dryRun(from, checked.queues)), schedules: schedules.length }
    const to = await openedTarget(target, opened)
    if (store !== undefined && (await isSameStore(store, to))) {
      throw new MillpondError('InvalidOption', 'the source and the target of a move are the same store')
    }
    const prepare = async (queue: string, isGiven: boolean) => {
      const settings = await from.settings(queue)
      if (settings === null) return
      checkSettings(to, queue, settings)
      if (isGiven) await retried(() => giveSettings(to, queue, settings), onTrouble, stop)
    }
    // Before the first job is moved.
    if (checked.settings !== false)
      for (const { queue } of await wanted(from, checked.queues)) await prepare(queue, false)
    checkSchedules(to, schedules)
    if (store !== undefined) await moveSchedules(store, retrying(to, onTrouble, stop), schedules, stop)
    const report = await new Mover(from, new Target(to), checked, (queue) => prepare(queue, true)).run()
    return { ...report, schedules: schedules.length }
  } finally {
    for (const one of opened) await one.close()
  }
}

async function openedSource(
  end: MoveEnd,
  opened: { close(): Promise<void> }[],
  onTrouble: (error: MillpondError) => void,
  stop: AbortSignal,
  { headers = true, dryRun: isDry = false }: MoveOptions,
): Promise<{ from: Source; store?: Store }> {
  const rival = isStore(end) ? undefined : await openRival(String(end), onTrouble, stop)
  if (rival !== undefined) {
    opened.push(rival)
    return { from: rival }
  }
  // Looking must not keep programs of an older version from starting again.
  if (isDry && !isStore(end)) await assertMigrated(String(end)).catch(alsoRivals)
  const found = isStore(end) ? end : await openExisting(end).catch(alsoRivals)
  if (!isStore(end)) opened.push(found)
  const store = retrying(found, onTrouble, stop)
  const { lists, update, remove } = store.capabilities
  return { from: lists && update && remove ? new StoreSource(store) : new ClaimSource(store, headers), store }
}

async function openedTarget(end: MoveEnd, opened: { close(): Promise<void> }[]): Promise<Store> {
  if (isStore(end)) return end
  if (isRival(String(end)))
    throw new MillpondError('InvalidOption', 'the jobs of another library can be the source alone')
  const store = await openStore(end, {})
  opened.push(store)
  if (isLasting(store)) return store
  throw new MillpondError('InvalidOption', 'jobs in memory: would be lost at the end of the move; give a durable store')
}

/** A store that lists no queues knows those that its own process has used. */
async function assertNamed(from: Source, names: readonly string[] | undefined): Promise<void> {
  if (names !== undefined || !(from instanceof ClaimSource) || (await from.counts()).length > 0) return
  const message = `the ${from.name} store lists no queues: name those to move by the option queues (--queue)`
  throw new MillpondError('InvalidOption', message)
}

/** A name that is misspelt would move nothing. Stores that only give jobs to workers may not list all queues. */
async function assertQueues(from: Source, names: readonly string[] | undefined): Promise<void> {
  if (names === undefined || from instanceof ClaimSource) return
  const known = new Set((await from.counts()).map(({ queue }) => queue))
  const unknown = names.find((name) => !known.has(name))
  if (unknown === undefined) return
  throw new MillpondError(
    'QueueUnknown',
    `the source has no queue ${JSON.stringify(unknown)}; a dry run of all queues lists them`,
  )
}

function isStore(end: unknown): end is Store {
  return typeof end === 'object' && end !== null && 'operations' in end && 'capabilities' in end
}
