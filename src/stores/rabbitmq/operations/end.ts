import type { Completion, FailOutcome, Failure, Hold, HoldOutcome, OfQueue, Release } from '../../../store.ts'
import { delayAfter } from '../../../values/backoff.ts'
import { type StoreContext, sourceOf } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Delivery, Source } from '../source.ts'
import { sendBack } from '../traffic.ts'
import { copyOf } from '../wire.ts'

interface Held<Item> {
  item: Item
  index: number
  delivery: Delivery
}

/** Ends the claims that hold, each once: `act` puts their jobs elsewhere, then RabbitMQ forgets their messages. */
async function end<Item extends Hold, Outcome>(
  context: StoreContext,
  { queue, items }: OfQueue<Item>,
  act: (held: Held<Item>[], source: Source) => Promise<Outcome[]>,
): Promise<(Outcome | 'stale')[]> {
  const outcomes: (Outcome | 'stale')[] = items.map(() => 'stale')
  const source = sourceOf(context, queue)
  const held = items.flatMap((item, index): Held<Item>[] => {
    const delivery = source.beginEnd(item)
    return delivery === undefined ? [] : [{ item, index, delivery }]
  })
  if (held.length === 0) return outcomes
  const deliveries = held.map(({ delivery }) => delivery)
  const acted = await source.end(deliveries, () => act(held, source))
  for (const [at, { index }] of held.entries()) outcomes[index] = acted[at] ?? 'stale'
  if (!source.isConsuming) context.bells.ring('work', queue)
  return outcomes
}

export function complete(context: StoreContext, input: OfQueue<Completion>): Promise<HoldOutcome[]> {
  return end(context, input, async (held, source) => {
    source.totals.done += held.length
    for (const { item } of held) context.bells.ring('finished', input.queue, item.id)
    return held.map(() => 'ok' as const)
  })
}

export function fail(context: StoreContext, input: OfQueue<Failure>): Promise<FailOutcome[]> {
  const { queue } = input
  const { backoff } = context.queues.of(queue).values
  return end(context, input, async (held, source) => {
    const now = context.now()
    const isLast = ({ item, delivery: { job } }: Held<Failure>): boolean =>
      item.delay === null || job.attempt >= job.attempts
    const again = held
      .filter((each) => !isLast(each))
      .map(({ item, delivery }) => {
        const { attempt } = delivery.job
        const delay = item.delay === 'backoff' ? delayAfter(backoff, attempt, Math.random()) : (item.delay ?? 0)
        return copyOf(delivery, queue, { [HEADER.attempt]: attempt, [HEADER.due]: now + delay }, delay)
      })
    const dead = held.filter(isLast).map(({ item, delivery }) => [delivery, item.error] as const)
    await Promise.all([sendBack(context, again), source.bury(dead)])
    source.totals.failed += held.length
    return held.map((each) => (isLast(each) ? 'dead' : 'retry'))
  })
}

export function release(context: StoreContext, input: OfQueue<Release>): Promise<HoldOutcome[]> {
  return end(context, input, async (held, source) => {
    const before = ({ job }: Delivery) => ({ [HEADER.attempt]: job.attempt - 1 })
    await sendBack(
      context,
      held.map(({ delivery }) => copyOf(delivery, input.queue, before(delivery))),
    )
    source.totals.released += held.length
    return held.map(() => 'ok' as const)
  })
}
