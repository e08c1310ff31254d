/** Workers that are still at their jobs. */

import type { Input } from '../../../store.ts'
import type { ExtendOutcome, Extension } from '../../../values/jobs/records.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { encodedOrNothing, idBytes, logsIn } from '../wire.ts'
import { callHolders } from './end.ts'

const OUTCOMES = ['ok', 'stale', 'cancelled'] as const

export function extend(
  context: StoreContext,
  { queue, lease, items: extensions }: Input<'extend'>,
): Promise<ExtendOutcome[]> {
  return callHolders<Extension, ExtendOutcome>(context, queue, extensions, async (partition, own) => {
    const items = own.flatMap(({ id, fence, progress }) => [idBytes(id), fence, encodedOrNothing(progress)])
    const answers = await callScript(context, 'extend', partition, { head: [lease, logsIn(own)], items })
    return answers.map((answer) => OUTCOMES[Number(answer)] ?? 'stale')
  })
}
