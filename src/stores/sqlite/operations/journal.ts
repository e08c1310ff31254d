import type { Input } from '../../../store.ts'
import type {
  EntriesPage,
  Entry,
  JournalOutcome,
  Park,
  ReleaseOutcome,
  SignalItem,
  SignalOutcome,
} from '../../../values/jobs/records.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import type { Statements } from '../connection/statements.ts'
import { flag, integer, integerOrNull, type Row, stateFrom, text } from '../connection/values.ts'
import { waitAgain } from '../graphs.ts'
import { addLog } from '../job-log.ts'
import { addEntries } from '../journal.ts'
import { isLive, type StoreContext } from '../queues.ts'
import { encodedFrom } from '../wire.ts'

/** A claim, as statements take it. */
type Hold = { queue: string; id: string; fence: number }

export function journal({ statements }: StoreContext, { queue, items }: Input<'journal'>): JournalOutcome[] {
  return items.map(({ id, fence, log, entries: given }) => {
    const hold = { queue, id, fence }
    addLog(statements, hold, log)
    const job = held(statements, hold)
    if (job === null) return 'stale'
    return addEntries(statements, job, given) === undefined ? 'full' : 'ok'
  })
}

/** The place of the job; null: the claim is stale. */
const held = (statements: Statements, hold: Hold): number | null =>
  integerOrNull(statements.get('journal/held', hold)?.job)

export function entries({ statements }: StoreContext, { items }: Input<'entries'>): (EntriesPage | null)[] {
  let room = DEFAULTS.steps.page
  return items.map(({ id, after }) => {
    const found = statements.get('journal/place', { id })
    if (found === undefined) return null
    const last = integerOrNull(found.last) ?? 0
    if (last <= after) return { entries: [], more: false }
    const whole = Number(room === DEFAULTS.steps.page)
    const rows = statements.all('journal/page', { job: integer(found.job), after, room, whole })
    for (const { bytes } of rows) room -= integer(bytes)
    return { entries: rows.map(entryFrom), more: (integerOrNull(rows.at(-1)?.n) ?? after) < last }
  })
}

const entryFrom = ({ n, name, meta, encoding, body }: Row): Entry => ({
  ...{ n: integer(n), name: text(name), meta: text(meta) },
  body: encoding === null ? null : encodedFrom(encoding, body),
})

export function signal(context: StoreContext, { items }: Input<'signal'>): SignalOutcome[] {
  const { statements } = context
  return items.map((item) => {
    const row =
      'id' in item
        ? statements.get('journal/named', { id: item.id })
        : statements.get('journal/keyed', { queue: item.queue, key: item.key })
    if (row === undefined) return { status: 'none', id: 'id' in item ? item.id : null }
    return { status: signalOne(context, row, item), id: text(row.id) }
  })
}

function signalOne({ statements, queues, now }: StoreContext, row: Row, entry: SignalItem): SignalOutcome['status'] {
  const state = stateFrom(row.state)
  const job = integer(row.job)
  if (!isLive(state)) return 'ended'
  if (addEntries(statements, job, [entry]) === undefined) return 'full'
  if (state !== 'scheduled' || !flag(row.parked)) return 'ok'
  statements.run('journal/wake', { job, now })
  const queue = queues.findOrCreate(text(row.queue))
  queue.move('scheduled', 'waiting')
  queues.lineUp(queue.name)
  return 'ok'
}

/** The claim is over, and the job waits for what `park` says. */
export function park(
  context: StoreContext,
  hold: Hold,
  { until, signals: known, after, entries: given, reason }: Park,
): ReleaseOutcome {
  const { statements, queues, now } = context
  const job = held(statements, hold)
  if (job === null) return 'stale'
  const signals = addEntries(statements, job, given)
  if (signals === undefined) return 'full'
  const queue = queues.findOrCreate(hold.queue)
  const dueAt = until ?? now + DEFAULTS.bounds.delay.most
  const isLater = after.length === 0 && dueAt > now && signals <= known
  const state = waitAgain(context, queue, job, after) ? 'blocked' : isLater ? 'scheduled' : 'waiting'
  const due_at = state === 'scheduled' ? dueAt : now
  statements.run('release/park', { job, state, due_at, reason })
  queue.move('running', state, 1, due_at - now)
  return 'ok'
}
