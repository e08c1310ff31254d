/** Which jobs wait, or waited, for which. */
import type { Input } from '../../../store.ts'
import type { Relatives } from '../../../values/operations/requests.ts'
import { inChunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, idBytes, idTexts, textIn } from '../wire.ts'
import { stateIn } from './find.ts'

export function relatives(context: StoreContext, { ids, limit }: Input<'relatives'>): Promise<(Relatives | null)[]> {
  return inChunks(ids, async (some) => {
    const answers = await callScript(context, 'relatives', { head: [limit], items: some.map(idBytes) })
    return answers.map((answer) => {
      if (!Array.isArray(answer)) return null
      const [queue, state, runs, more, parents, children, gone] = answer as readonly unknown[]
      return {
        queue: textIn(queue),
        state: stateIn(state),
        onDead: runs === 1 ? 'run' : 'cancel',
        parents: idTexts(bytesIn(parents), 0),
        gone: idTexts(bytesIn(gone), 0),
        children: idTexts(bytesIn(children), 0),
        more: more === 1,
      }
    })
  })
}
