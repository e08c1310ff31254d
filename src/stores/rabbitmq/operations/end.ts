import type { Completion, FailOutcome, Failure, HoldOutcome, OfQueue, Release } from '../../../store.ts'
import { delayAfter } from '../../../values/backoff.ts'
import { type StoreContext, sourceOf } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Held } from '../source.ts'
import { bury, sendBack } from '../traffic.ts'
import { copyOf } from '../wire.ts'

export function complete(context: StoreContext, { queue, items }: OfQueue<Completion>): Promise<HoldOutcome[]> {
  const source = sourceOf(context, queue)
  return source.end(items, async (held) => {
    source.totals.done += held.length
    for (const { item } of held) context.bells.ring('finished', queue, item.id)
    return held.map(() => 'ok')
  })
}

export function fail(context: StoreContext, { queue, items }: OfQueue<Failure>): Promise<FailOutcome[]> {
  const source = sourceOf(context, queue)
  const { backoff } = context.queues.of(queue).values
  const isLast = ({ item, delivery: { job } }: Held<Failure>): boolean =>
    item.delay === null || job.attempt >= job.attempts
  return source.end(items, async (held) => {
    const now = context.now()
    const again = held
      .filter((each) => !isLast(each))
      .map(({ item, delivery }) => {
        const { attempt } = delivery.job
        const delay = item.delay === 'backoff' ? delayAfter(backoff, attempt, Math.random()) : (item.delay ?? 0)
        return copyOf(delivery, queue, { [HEADER.attempt]: attempt, [HEADER.due]: now + delay }, delay)
      })
    const dead = held.filter(isLast).map(({ item, delivery }) => [delivery, item.error] as const)
    await Promise.all([sendBack(context, again), bury(context, queue, dead, source.totals)])
    source.totals.failed += held.length
    return held.map((each) => (isLast(each) ? 'dead' : 'retry'))
  })
}

export function release(context: StoreContext, { queue, items }: OfQueue<Release>): Promise<HoldOutcome[]> {
  const source = sourceOf(context, queue)
  return source.end(items, async (held) => {
    const copies = held.map(({ delivery }) => copyOf(delivery, queue, { [HEADER.attempt]: delivery.job.attempt - 1 }))
    await sendBack(context, copies)
    source.totals.released += held.length
    return held.map(() => 'ok')
  })
}
