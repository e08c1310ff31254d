import type { OfQueue } from '../../../store.ts'
import type { Completion, FailOutcome, Failure, HoldOutcome, JobError, Release } from '../../../values/jobs/records.ts'
import { delayAfter } from '../../../values/settings/backoff.ts'
import { type StoreContext, sourceOf } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Held, Source } from '../source.ts'
import { sendBack } from '../traffic.ts'
import { copyOf, deadOf, type Parcel } from '../wire.ts'

export function complete(context: StoreContext, { queue, items }: OfQueue<Completion>): Promise<HoldOutcome[]> {
  const source = sourceOf(context, queue)
  return source.end(items, async (held) => {
    source.totals.done += held.length
    for (const { item } of held) context.bells.ring('finished', queue, item.id)
    return () => 'ok'
  })
}

export function fail(context: StoreContext, { queue, items }: OfQueue<Failure>): Promise<FailOutcome[]> {
  const source = sourceOf(context, queue)
  const { backoff } = context.queues.of(queue).values
  return source.end(items, async (held) => {
    const outcomeOf = await endAttempts(context, source, held, ({ item: { delay, error }, delivery: { job } }) => ({
      error,
      delay: delay === 'backoff' ? delayAfter(backoff, job.attempt, Math.random()) : delay,
    }))
    source.totals.failed += held.length
    return outcomeOf
  })
}

/** Jobs with attempts left wait again for `delay` ms. The others are dead, as are those whose `delay` is null. */
export async function endAttempts<Item>(
  context: StoreContext,
  { queue, totals }: Source,
  held: readonly Held<Item>[],
  how: (held: Held<Item>) => { error: JobError; delay: number | null },
): Promise<(held: Held<Item>) => FailOutcome> {
  const { keepDead } = context.queues.of(queue).values
  const now = context.now()
  const dead = new Set<Held<Item>>()
  const copies = new Map<Held<Item>, Parcel>()
  for (const each of held) {
    const { delivery } = each
    const { job } = delivery
    const { error, delay } = how(each)
    const attempt = { [HEADER.attempt]: job.attempt }
    if (delay === null || job.attempt >= job.attempts) {
      dead.add(each)
      for (const parcel of deadOf(copyOf(delivery, queue, attempt), error, keepDead)) copies.set(each, parcel)
    } else if (delivery.isForeign) delivery.after = delay
    else copies.set(each, copyOf(delivery, queue, { ...attempt, [HEADER.due]: now + delay }, delay))
  }
  const answers = await sendBack(context, [...copies.values()])
  for (const [index, each] of [...copies.keys()].entries()) {
    if (answers[index] === 'stored') continue
    // A limit of its line refuses the job: a retry goes back without its delay. A dead job keeps its claim, and is failed again.
    each.delivery.after = dead.has(each) ? 'keep' : 'giveBack'
    dead.delete(each)
  }
  totals.dead += dead.size
  for (const { delivery } of dead) context.bells.ring('finished', queue, delivery.job.id)
  return (each) => (dead.has(each) ? 'dead' : each.delivery.after === 'keep' ? 'full' : 'retry')
}

export function release(context: StoreContext, { queue, items }: OfQueue<Release>): Promise<HoldOutcome[]> {
  const source = sourceOf(context, queue)
  return source.end(items, async (held) => {
    const own = held.flatMap(({ delivery }) => (delivery.isForeign ? [] : delivery))
    const unrun = own.map((each) => copyOf(each, queue, { [HEADER.attempt]: each.job.attempt - 1 }, each.remaining))
    const answers = await sendBack(context, unrun)
    for (const { delivery } of held) {
      if (answers[own.indexOf(delivery)] !== 'stored') delivery.after = 'giveBack'
    }
    source.totals.released += held.length
    return () => 'ok'
  })
}
