import type { Input } from '../../../store.ts'
import type { Relatives } from '../../../values/operations/requests.ts'
import { flag, integer, type Row, stateFrom, text } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'
import { waitsOf } from './find.ts'

export function relatives(
  { statements }: StoreContext,
  { ids, limit: most }: Input<'relatives'>,
): (Relatives | null)[] {
  // One more than asked for, to learn whether there are more.
  const limit = most + 1
  const idsIn = (rows: readonly Row[]): string[] => rows.map(({ id = null }) => text(id))
  return ids.map((id) => {
    const row = statements.get('relatives/job', { id })
    if (row === undefined) return null
    const seq = integer(row.seq)
    const parents = statements.all('relatives/parents', { seq, limit })
    const isGone = ({ gone }: Row) => flag(gone)
    const shown = parents.slice(0, most)
    const children = idsIn(statements.all('relatives/children', { seq, limit }))
    return {
      ...{ queue: text(row.queue), state: stateFrom(row.state), onDead: waitsOf(statements, row).onDead ?? 'cancel' },
      ...{ parents: idsIn(shown.filter((row) => !isGone(row))), gone: idsIn(shown.filter(isGone)) },
      children: children.slice(0, most),
      more: parents.length > most || children.length > most,
    }
  })
}
