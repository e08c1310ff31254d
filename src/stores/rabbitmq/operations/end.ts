import type { Completion, Failure, FailOutcome, Hold, HoldOutcome, OfQueue, Release } from '../../../store.ts'
import { backoffDelay } from '../../../values/backoff.ts'
import { lacking } from '../capabilities.ts'
import { send, type StoreContext, totalsOf, valuesOf } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Delivery, Source } from '../source.ts'
import { copyOf } from '../wire.ts'

interface Held<Item> {
  item: Item
  index: number
  delivery: Delivery
}

/** Ends the claims that hold, each once. */
async function end<Item extends Hold, Outcome>(
  { sources }: StoreContext,
  { queue, items }: OfQueue<Item>,
  act: (held: Held<Item>[], source: Source) => Promise<Outcome[]>,
): Promise<(Outcome | 'stale')[]> {
  const outcomes: (Outcome | 'stale')[] = items.map(() => 'stale')
  const source = sources.get(queue)
  const ended = new Set<Delivery>()
  const held = items.flatMap((item, index): Held<Item>[] => {
    const delivery = source?.find(item)
    if (delivery === undefined || ended.has(delivery)) return []
    ended.add(delivery)
    return [{ item, index, delivery }]
  })
  if (source === undefined || held.length === 0) return outcomes
  const acted = await act(held, source)
  // What was lost while it was moved is another worker's by now.
  const holds = held.map(({ item }) => source.find(item) !== undefined)
  source.acknowledge(held.map(({ delivery }) => delivery))
  await source.settled()
  for (const [position, { index }] of held.entries()) if (holds[position]) outcomes[index] = acted[position] ?? 'stale'
  return outcomes
}

export async function complete(context: StoreContext, input: OfQueue<Completion>): Promise<HoldOutcome[]> {
  const outcomes = await end(context, input, async (held) => held.map(() => 'ok' as const))
  totalsOf(context, input.queue).done += outcomes.filter((outcome) => outcome === 'ok').length
  return outcomes
}

export function fail(context: StoreContext, input: OfQueue<Failure>): Promise<FailOutcome[]> {
  const { queue } = input
  const { backoff } = valuesOf(context, queue)
  return end(context, input, async (held, source) => {
    const isLast = ({ item, delivery: { job } }: Held<Failure>): boolean =>
      item.delay === null || job.attempt >= job.attempts
    const now = context.now()
    const parcels = held
      .filter((each) => !isLast(each))
      .map(({ item, delivery }) => {
        const { attempt } = delivery.job
        const delay = item.delay === 'backoff' ? backoffDelay(backoff, attempt, Math.random()) : (item.delay ?? 0)
        const changes = { [HEADER.attempt]: attempt, [HEADER.due]: now + delay }
        return copyOf(delivery, queue, changes, delay)
      })
    await Promise.all([
      send(context, parcels),
      ...held.filter(isLast).map(({ item, delivery }) => source.bury([delivery], item.error)),
    ])
    totalsOf(context, queue).failed += held.length
    if (parcels.length > 0) context.bells.ring('work', queue)
    return held.map((each) => (isLast(each) ? 'dead' : 'retry'))
  })
}

export async function release(context: StoreContext, input: OfQueue<Release>): Promise<HoldOutcome[]> {
  if (input.items.some(({ pause }) => pause)) throw lacking('rates', 'a pause')
  const { queue } = input
  return end(context, input, async (held) => {
    await send(
      context,
      held.map(({ delivery }) => copyOf(delivery, queue, { [HEADER.attempt]: delivery.job.attempt - 1 })),
    )
    totalsOf(context, queue).released += held.length
    context.bells.ring('work', queue)
    return held.map(() => 'ok' as const)
  })
}
