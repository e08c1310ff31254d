/** Journals of jobs, and signals: contract/steps.md. */
import type { Input } from '../../../store.ts'
import type { EntriesPage, JournalOutcome, NewEntry, SignalItem, SignalOutcome } from '../../../values/jobs/records.ts'
import { chunks, inChunks, MAX_CHANGES_PER_CALL, MAX_ITEMS_PER_CALL } from '../chunks.ts'
import type { Arg } from '../connection/calls.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, entryBytes, entryIn, idBytes, idText, logsIn, numberIn, textIn, unexpected } from '../wire.ts'

const OUTCOMES: readonly JournalOutcome[] = ['ok', 'stale', 'full']
const STATUSES = ['ok', 'ended', 'full', 'none'] as const

/** As scripts take entries. */
export const entryArgs = ({ name, ...holds }: NewEntry): Arg[] => [name, entryBytes(holds)]

/** Bytes of entries, about. */
export const sizeOf = (entries: readonly NewEntry[]): number =>
  entries.reduce((sum, { name, meta, body }) => sum + name.length + meta.length + (body?.body.length ?? 0), 0)

export function journal(context: StoreContext, { queue, items }: Input<'journal'>): Promise<JournalOutcome[]> {
  return inChunks(
    items,
    async (some) => {
      const logs = logsIn(some)
      const head = [some.map(({ entries }) => entries.length), ...(logs === null ? [] : [logs])]
      const args: Arg[] = some.flatMap(({ id, fence }) => [idBytes(id), fence])
      for (const { entries } of some) for (const entry of entries) args.push(...entryArgs(entry))
      const answers = await callScript(context, 'journal', { queue, head, items: args, safe: true })
      return answers.map((answer) => OUTCOMES[Number(answer)] ?? 'stale')
    },
    MAX_CHANGES_PER_CALL,
    (item) => sizeOf(item.entries),
  )
}

/** One call after the other: what one has left of the room is the next one's. */
export async function entries(context: StoreContext, { items }: Input<'entries'>): Promise<(EntriesPage | null)[]> {
  const pages: (EntriesPage | null)[] = []
  let head: number[] = []
  for (const some of chunks(items, MAX_ITEMS_PER_CALL)) {
    const args = some.flatMap(({ id, after }) => [idBytes(id), after])
    const [room, ...answers] = await callScript(context, 'entries', { head, items: args })
    pages.push(...answers.map(pageIn))
    if (pages.some((page) => page !== null && page.entries.length > 0)) head = [numberIn(room)]
  }
  return pages
}

const PER_ENTRY = 3

/** As `entries.lua` answers. */
function pageIn(page: unknown): EntriesPage | null {
  if (page === null) return null
  if (!Array.isArray(page)) throw unexpected(page, 'a list')
  const [more, ...fields] = page as readonly unknown[]
  const entries = chunks(fields, PER_ENTRY).map(([n, name, holds]) => ({
    n: numberIn(n),
    name: textIn(name),
    ...entryIn(bytesIn(holds)),
  }))
  return { entries, more: more === 1 }
}

export function signal(context: StoreContext, { items }: Input<'signal'>): Promise<SignalOutcome[]> {
  return inChunks(
    items,
    async (some) => {
      const args = some.flatMap((item) => [...whomArgs(item), ...entryArgs(item)])
      const answers = await callScript(context, 'signal', { items: args, safe: true })
      return answers.map((answer) => {
        if (!Array.isArray(answer)) throw unexpected(answer, 'a list')
        const [status, id = null, woken = null] = answer as readonly unknown[]
        if (woken !== null) context.notifier.local.ring('work', textIn(woken))
        return { status: STATUSES[numberIn(status)] ?? 'none', id: id === null ? null : idText(bytesIn(id)) }
      })
    },
    MAX_CHANGES_PER_CALL,
    (item) => sizeOf([item]),
  )
}

const whomArgs = (item: SignalItem): Arg[] => ('id' in item ? [idBytes(item.id), '', ''] : ['', item.queue, item.key])
