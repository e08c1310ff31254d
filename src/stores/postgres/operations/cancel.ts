import type { Input } from '../../../store.ts'
import type { FinalState } from '../../../values/jobs/records.ts'
import type { StoreContext } from '../context.ts'
import { plainArray } from '../wire.ts'

export async function cancel(context: StoreContext, { ids }: Input<'cancel'>): Promise<(FinalState | null)[]> {
  const { calls, notifier } = context
  notifier.stir()
  const answers = await context.apart(ids, {
    sent: (some) => ['cancel($1, $2)', [plainArray(some), calls.now()]],
    read: (answer: string[]) => answer,
  })
  return answers.map((answer, at) => {
    if (answer === '') return null
    const [queue = '', was = ''] = answer.split(' ')
    if (was === 'done' || was === 'dead' || was === 'cancelled') return was
    notifier.bells.ring('cancelled', queue, ids[at])
    notifier.bells.ring('finished', queue, ids[at])
    if (was !== 'running') notifier.bells.ring('room', queue)
    return 'cancelled'
  })
}
