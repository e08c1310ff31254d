/** Jobs that are not wanted any more. */

import type { Input } from '../../../store.ts'
import type { FinalState } from '../../../values/jobs/records.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { askOwners } from '../owners.ts'
import { idBytes } from '../wire.ts'

const FINAL_STATES = ['done', 'dead', 'cancelled'] as const
/** What the script answers where it has just cancelled a job that waited, or ran. */
const WAITED = 3
const RAN = 4

export function cancel(context: StoreContext, { ids }: Input<'cancel'>): Promise<(FinalState | null)[]> {
  const { local } = context.notifier
  return askOwners<FinalState>(context, ids, async (partition, own) => {
    const answers = await callScript(context, 'cancel', partition, { items: own.map(idBytes), safe: true })
    return own.slice(0, answers.length).map((id, i) => {
      const answer = Number(answers[i])
      if (answer !== WAITED && answer !== RAN) return FINAL_STATES[answer] ?? null
      local.ring('cancelled', partition.queue, id)
      local.ring('finished', partition.queue, id)
      if (answer === WAITED) local.ring('room', partition.queue)
      return 'cancelled'
    })
  })
}
