/** What handlers' steps need: journal, entries, signal, and parks of release. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Input, OfQueue } from '../../../store.ts'
import { MillpondError } from '../../../values/errors/errors.ts'
import type {
  EntriesPage,
  JournalItem,
  JournalOutcome,
  Park,
  Release,
  ReleaseOutcome,
  SignalItem,
  SignalOutcome,
} from '../../../values/jobs/records.ts'
import type { StoreContext } from '../context.ts'
import {
  type EntryList,
  entryFrom,
  heldValues,
  linesText,
  logsText,
  orNull,
  plainArray,
  storedFence,
  tagged,
  taggedEntry,
  textArray,
} from '../wire.ts'

/** Ms until what another transaction held is sent again, twice as many each time. */
const FIRST_PAUSE = 5
const LONGEST_PAUSE = 250
/** Ms for which entries and parks wait for another transaction. After that, the worker sends them again, by themselves. */
export const PATIENCE = 100

export async function journal(context: StoreContext, { queue, items }: Input<'journal'>): Promise<JournalOutcome[]> {
  const { calls } = context
  return whileHeld(items, PATIENCE, (some: readonly JournalItem[]) =>
    calls.answer<JournalOutcome[]>(JOURNAL, journalValues({ queue, items: some })),
  )
}

export const JOURNAL = 'journal($1, $2, $3, $4, $5, $6, $7, $8)'

export function journalValues({ queue, items }: OfQueue<JournalItem>): unknown[] {
  const given = items.flatMap(({ entries }, at) => entries.map((entry) => ({ ...entry, of: at + 1 })))
  return [
    ...[queue, ...heldValues(items), plainArray(given.map(({ of }) => of))],
    ...[textArray(given.map(({ name }) => name)), textArray(given.map(({ meta }) => meta))],
    ...[textArray(given.map(({ body }) => orNull(body, tagged))), logsText(items)],
  ]
}

export async function entries({ calls }: StoreContext, { items }: Input<'entries'>): Promise<(EntriesPage | null)[]> {
  if (items.length === 0) return []
  const values = [plainArray(items.map(({ id }) => id)), plainArray(items.map(({ after }) => after))]
  const pages = await calls.answer<({ entries: EntryList[]; more: boolean } | null)[]>('entries($1, $2)', values)
  return pages.map((page) => page && { entries: page.entries.map(entryFrom), more: page.more })
}

export async function signal(context: StoreContext, { items }: Input<'signal'>): Promise<SignalOutcome[]> {
  const { calls, notifier } = context
  const answers = await whileHeld(items, calls.deadline, async (some: readonly SignalItem[]) => {
    const sent = some.map((item) => ({ ...item, ...taggedEntry(item) }))
    const texts = await calls.answer<string[]>('signal_jobs($1, true, $2)', [JSON.stringify(sent), calls.now()])
    return texts.map((text) => (text.startsWith('held ') ? 'held' : text))
  })
  // The same call again adds nothing to jobs that have their signals.
  if (answers.includes('held'))
    throw new MillpondError('StoreBusy', 'another transaction holds the job or its journal; the call can be made again')
  return answers.map((answer) => {
    const [status, id, queue] = answer.split(' ')
    if (queue !== undefined) notifier.bells.ring('work', queue)
    return { status: status as SignalOutcome['status'], id: id || null }
  })
}

/** @returns `held` where another transaction has the job for longer than a moment */
export async function park(
  { calls, notifier }: StoreContext,
  queue: string,
  items: readonly (Release & { park: Park })[],
  deferred: boolean,
): Promise<ReleaseOutcome[]> {
  const outcomes = await whileHeld(items, deferred ? PATIENCE : calls.deadline, async (some) => {
    const sent = some.map(({ id, fence, log, park: { entries, ...wait } }) => {
      return { ...wait, id, fence: storedFence(fence), log: linesText(log), entries: entries.map(taggedEntry) }
    })
    return calls.answer<ReleaseOutcome[]>('park($1, $2, $3)', [queue, JSON.stringify(sent), calls.now()])
  })
  if (outcomes.includes('ok')) notifier.bells.ring('work', queue)
  if (!deferred && outcomes.includes('held')) {
    throw new MillpondError('StoreBusy', 'another transaction holds the job or its journal; the call can be made again')
  }
  return outcomes
}

/** Sends again what another transaction holds. */
export async function whileHeld<Item, Out>(
  items: readonly Item[],
  patience: number,
  send: (items: readonly Item[]) => Promise<(Out | 'held')[]>,
): Promise<(Out | 'held')[]> {
  if (items.length === 0) return []
  const outcomes = await send(items)
  const until = performance.now() + patience
  for (let pause = FIRST_PAUSE; performance.now() < until; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    const held = [...outcomes.keys()].filter((at) => outcomes[at] === 'held')
    if (held.length === 0) break
    await sleep(pause)
    const again = await send(held.map((at) => items[at] as Item))
    for (const [nth, at] of held.entries()) outcomes[at] = again[nth] ?? 'held'
  }
  return outcomes
}
