/**
 * Spill-over: a memory store whose full queues overflow to a durable store, and that hands all its jobs to it when it closes.
 *
 * Jobs run from memory alone. What was spilled comes back as room appears: `spilled-queue.ts`. A queue of which nothing is
 * in the durable store never touches that.
 *
 *   push ─► memory ──full──► durable store        close: memory ──► durable store
 *   claim ◄─ memory ◄──room─── durable store
 *
 * Several processes may share the durable store. Each job is in the memory of one of them at most.
 */
import { randomBytes } from 'node:crypto'
import type { Capabilities, Input, OperationName, Output, Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { lacking } from '../../values/operations/capabilities.ts'
import { around } from '../around.ts'
import type { MemoryState } from '../memory/state.ts'
import { ahead, find, groups, list, outcomes, stats } from './both.ts'
import { bulk } from './bulk.ts'
import { cancel, remove, requeue, restore, update } from './changes.ts'
import { claim } from './claim.ts'
import { Exclusion } from './exclusion.ts'
import { handOver } from './hand-over.ts'
import { NAMED, push } from './push.ts'
import { Spill } from './spill.ts'
import { TAKER } from './spilled-queue.ts'
import { sweep } from './sweep.ts'

const NEEDED: readonly (keyof Capabilities)[] = [
  ...(['durable', 'delays', 'priorities', 'keys', 'find', 'lists', 'cancel', 'update'] as const),
  ...(['requeue', 'remove', 'restore'] as const),
]

type Handlers = {
  [Name in OperationName]?: (
    spill: Spill,
    input: Input<Name>,
    next: (input: Input<Name>) => Promise<Output<Name>>,
  ) => Promise<Output<Name>>
}

/** What is not here is of memory alone: claims are all there. */
const HANDLERS: Handlers = {
  ...{ push, claim, sweep, find, outcomes, list, groups, stats, ahead, cancel, update, requeue, remove, bulk, restore },
  relatives: () => Promise.reject(lacking(NAMED, 'graphs', 'relatives')),
  journal: () => Promise.reject(lacking(NAMED, 'steps', 'steps')),
  entries: () => Promise.reject(lacking(NAMED, 'steps', 'steps')),
  signal: () => Promise.reject(lacking(NAMED, 'steps', 'signals')),
  release: (_, input, next) =>
    input.items.some(({ park }) => park !== undefined)
      ? Promise.reject(lacking(NAMED, 'steps', 'a job that waits in its handler'))
      : next(input),
  configure: (spill, input, next) => telling(spill, input.queue, () => next(input)),
  limitGroup: (spill, input, next) => telling(spill, input.queue, () => next(input)),
}

/** What the durable store was told of the queue's settings may have changed. */
async function telling<T>(spill: Spill, name: string, call: () => Promise<T>): Promise<T> {
  const answer = await call()
  const queue = spill.queues.get(name)
  if (queue?.told) {
    queue.told = false
    await spill.tell(queue)
  }
  return answer
}

/** @throws NotSupported: the durable store lacks something. As its operations do */
export async function spillOver(memory: Store, state: MemoryState, durable: Store): Promise<Store> {
  const missing = NEEDED.filter((name) => !durable.capabilities[name])
  if (missing.length > 0) {
    await durable.close()
    const message = `the spill store needs ${missing.join(', ')}, which ${durable.name} lacks; use another store`
    throw new MillpondError('NotSupported', message)
  }
  let closing: Promise<void> | undefined
  let unlisten: (() => void) | undefined
  let listeners = 0
  const spill = new Spill({
    ...{ memory, state, durable },
    exclusion: new Exclusion(),
    taker: TAKER + randomBytes(6).toString('hex'),
    isClosed: () => closing !== undefined,
  })
  await spill.look()
  const wrapped = around(memory, (name, input, next) => {
    const handler = HANDLERS[name]
    return handler === undefined || closing !== undefined ? next(input) : handler(spill, input, next)
  })
  async function close(): Promise<void> {
    unlisten?.()
    try {
      await handOver(spill)
    } finally {
      await memory.close()
      await durable.close()
    }
  }
  return {
    ...wrapped,
    capabilities: { ...memory.capabilities, spill: true, once: false, graphs: false, steps: false },
    // A slow spill store delays the pushes of its own queue alone.
    laneOf: ({ queue, spill }) => (spill ? queue : ''),
    listen(listener) {
      const stop = memory.listen(listener)
      if (listeners++ === 0) unlisten = durable.listen((bell) => spill.heard(bell))
      let isOver = false
      return () => {
        stop()
        if (isOver) return
        isOver = true
        if (--listeners > 0) return
        unlisten?.()
        unlisten = undefined
      }
    },
    close: () => {
      closing ??= close()
      return closing
    },
  }
}
