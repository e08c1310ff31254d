/** Workers that are still at their jobs. */
import type { Input } from '../../../store.ts'
import type { ExtendOutcome } from '../../../values/jobs/records.ts'
import { inChunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { encodedOrNothing, idBytes, logsIn } from '../wire.ts'

const OUTCOMES = ['ok', 'stale', 'cancelled'] as const

export function extend(context: StoreContext, { queue, lease, items }: Input<'extend'>): Promise<ExtendOutcome[]> {
  return inChunks(items, async (some) => {
    const args = some.flatMap(({ id, fence, progress }) => [idBytes(id), fence, encodedOrNothing(progress)])
    const logs = logsIn(some)
    const safe = logs !== null || some.some(({ progress }) => progress !== null)
    const answers = await callScript(context, 'extend', { queue, head: [lease, logs], items: args, safe })
    return answers.map((answer) => OUTCOMES[Number(answer)] ?? 'stale')
  })
}
