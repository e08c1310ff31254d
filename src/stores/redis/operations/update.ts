import type { Input } from '../../../store.ts'
import type { UpdateOutcome } from '../../../values/operations/requests.ts'
import { inChunks, MAX_CHANGES_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { encodedOrNothing, idBytes, pack } from '../wire.ts'

const UNCHANGED = [null, 'running', 'done', 'dead', 'cancelled'] as const

export function update(context: StoreContext, { items }: Input<'update'>): Promise<UpdateOutcome[]> {
  return inChunks(
    items,
    async (some) => {
      const args = some.flatMap(({ id, data = null, priority = null, delay = null, runAt = null }) => [
        idBytes(id),
        pack([priority, delay, runAt]),
        encodedOrNothing(data),
      ])
      const answers = await callScript(context, 'update', { items: args, safe: true })
      return answers.map((answer) => {
        if (!Buffer.isBuffer(answer)) return UNCHANGED[Number(answer)] ?? null
        context.notifier.local.ring('work', answer.toString())
        return 'updated'
      })
    },
    MAX_CHANGES_PER_CALL,
  )
}
