import type { Completion, FailOutcome, Failure, Hold, HoldOutcome, OfQueue, Release } from '../../../store.ts'
import { backoffDelay } from '../../../values/backoff.ts'
import { bury, type StoreContext, sendBack, sourceOf } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Delivery, Source } from '../source.ts'
import { copyOf } from '../wire.ts'

interface Held<Item> extends Delivery {
  item: Item
}

/** Ends the claims that hold, each once: `act` puts their jobs elsewhere, then RabbitMQ forgets their messages. */
async function end<Item extends Hold, Outcome>(
  context: StoreContext,
  { queue, items }: OfQueue<Item>,
  act: (held: Held<Item>[], source: Source) => Promise<Outcome[]>,
): Promise<(Outcome | 'stale')[]> {
  const outcomes: (Outcome | 'stale')[] = items.map(() => 'stale')
  const source = sourceOf(context, queue)
  const found = new Map<Delivery, number>()
  for (const [index, item] of items.entries()) {
    const delivery = source.find(item)
    if (delivery !== undefined && !found.has(delivery)) found.set(delivery, index)
  }
  if (found.size === 0) return outcomes
  const acted = await act(
    [...found].flatMap(([delivery, index]) => {
      const item = items[index]
      return item === undefined ? [] : [{ ...delivery, item }]
    }),
    source,
  )
  // What was lost while it was moved is another worker's by now.
  const ended = [...found].map(([delivery, index], at) => ({ delivery, index, outcome: acted[at] }))
  const holding = ended.filter(({ delivery }) => source.find(delivery.job) === delivery)
  source.acknowledge(holding.map(({ delivery }) => delivery))
  await source.settled()
  for (const { index, outcome } of holding) outcomes[index] = outcome ?? 'stale'
  return outcomes
}

export function complete(context: StoreContext, input: OfQueue<Completion>): Promise<HoldOutcome[]> {
  return end(context, input, async (held, source) => {
    source.totals.done += held.length
    return held.map(() => 'ok' as const)
  })
}

export function fail(context: StoreContext, input: OfQueue<Failure>): Promise<FailOutcome[]> {
  const { queue } = input
  const { backoff } = context.registry.of(queue).values
  return end(context, input, async (held, source) => {
    const now = context.now()
    const isLast = ({ item, job }: Held<Failure>): boolean => item.delay === null || job.attempt >= job.attempts
    const again = held
      .filter((each) => !isLast(each))
      .map((each) => {
        const { attempt } = each.job
        const delay =
          each.item.delay === 'backoff' ? backoffDelay(backoff, attempt, Math.random()) : (each.item.delay ?? 0)
        return copyOf(each, queue, { [HEADER.attempt]: attempt, [HEADER.due]: now + delay }, delay)
      })
    await Promise.all([sendBack(context, again), bury(context, queue, held.filter(isLast), ({ item }) => item.error)])
    source.totals.failed += held.length
    return held.map((each) => (isLast(each) ? 'dead' : 'retry'))
  })
}

export function release(context: StoreContext, input: OfQueue<Release>): Promise<HoldOutcome[]> {
  return end(context, input, async (held, source) => {
    const attempt = ({ job }: Delivery) => ({ [HEADER.attempt]: job.attempt - 1 })
    await sendBack(
      context,
      held.map((each) => copyOf(each, input.queue, attempt(each))),
    )
    source.totals.released += held.length
    return held.map(() => 'ok' as const)
  })
}
