/** Jobs that are not wanted any more. */
import type { Input } from '../../../store.ts'
import type { FinalState } from '../../../values/jobs/records.ts'
import { inChunks, MAX_CHANGES_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { idBytes, textIn } from '../wire.ts'

const FINAL_STATES = ['done', 'dead', 'cancelled'] as const
/** What the script answers of a job that it has just cancelled while it waited. */
const WAITED = 3

export function cancel(context: StoreContext, { ids }: Input<'cancel'>): Promise<(FinalState | null)[]> {
  const { local } = context.notifier
  return inChunks(
    ids,
    async (some) => {
      const answers = await callScript(context, 'cancel', { items: some.map(idBytes), safe: true })
      return answers.map((answer, at) => {
        if (!Array.isArray(answer)) return FINAL_STATES[Number(answer)] ?? null
        const [how, name] = answer
        const queue = textIn(name)
        local.ring('cancelled', queue, some[at])
        local.ring('finished', queue, some[at])
        if (how === WAITED) local.ring('room', queue)
        return 'cancelled'
      })
    },
    MAX_CHANGES_PER_CALL,
  )
}
