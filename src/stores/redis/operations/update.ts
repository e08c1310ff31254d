import type { Input } from '../../../store.ts'
import type { JobUpdate, UpdateOutcome } from '../../../values/operations/requests.ts'
import { SOON } from '../../bells.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { askOwnersOf } from '../owners.ts'
import { encodedOrNothing, idBytes, pack } from '../wire.ts'

const OUTCOMES = ['updated', 'running', 'done', 'dead', 'cancelled'] as const

export function update(context: StoreContext, { items }: Input<'update'>): Promise<UpdateOutcome[]> {
  return askOwnersOf<JobUpdate, Exclude<UpdateOutcome, null>>(context, items, async (partition, own) => {
    const args = own.flatMap(({ id, data = null, priority = null, delay = null, runAt = null }) => [
      idBytes(id),
      pack([priority, delay, runAt]),
      encodedOrNothing(data),
    ])
    const answers = await callScript(context, 'update', partition, { items: args, safe: true })
    const isSoon = ({ delay, runAt, priority }: JobUpdate) => priority ?? runAt ?? (delay !== undefined && delay < SOON)
    if (own.some(isSoon)) context.notifier.local.ring('work', partition.queue)
    return answers.map((answer) => OUTCOMES[Number(answer)] ?? null)
  })
}
