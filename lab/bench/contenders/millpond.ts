/** Millpond through its public API. Nothing is tuned but that the memory queue may hold the whole backlog. */
import { setImmediate as turn } from 'node:timers/promises'
import { Millpond, type Queue, type QueueOptions, type Worker } from '../../../src/index.ts'
import type { Contender, Handler, Item, Line, Open, Setting } from '../contender.ts'

const PATHS: Record<NonNullable<Setting['path']>, { retry?: NonNullable<QueueOptions['retry']>; delay?: number }> = {
  plain: {},
  retried: { retry: { backoff: () => 0 } },
  delayed: { delay: 50 },
}

export const open: Open = async (setting) => {
  const pond = await Millpond.open(setting.url)
  // Kept, as a service keeps its queues and workers: where none of a class is left, V8 throws away the code that it has compiled for it.
  const lines: Line[] = []
  return {
    line(name, handler) {
      const made = line(pond, name, handler, setting)
      lines.push(made)
      return made
    },
    close: async () => {
      await pond.close()
    },
  } satisfies Contender
}

function line(
  pond: Millpond,
  name: string,
  handler: Handler,
  { url, concurrency, forget, limit, path = 'plain' }: Setting,
): Line {
  const { retry = {}, delay = 0 } = PATHS[path]
  const queue: Queue<Item> = pond.queue<Item>(name, {
    ...(url === 'memory:' ? { capacity: null } : {}),
    ...(forget ? { keep: { done: 0 } } : {}),
    ...(limit === undefined ? {} : { limits: { group: { running: limit } } }),
    retry,
  })
  const each = ({ group }: Item) => (group === undefined ? {} : { group })
  let worker: Worker | undefined
  let handled = 0
  let awaited = Number.POSITIVE_INFINITY
  let reached = () => {}
  return {
    push: (item) => queue.push(item),
    pushMany(items) {
      if (limit !== undefined) return queue.pushMany(items, { each })
      return delay === 0 ? queue.pushMany(items) : queue.pushMany(items, { delay })
    },
    work() {
      worker = queue.work(
        (job) => {
          if (++handled === awaited) reached()
          return handler(job.data)
        },
        { concurrency },
      )
    },
    async settled(total) {
      await new Promise<void>((resolve) => {
        awaited = total
        reached = resolve
        if (handled >= total) resolve()
      })
      // Handled is not yet acknowledged: the store must have every completion.
      for (;;) {
        const { counts } = await queue.stats({ minutes: 1 })
        if (counts.waiting + counts.running === 0) return
        await turn()
      }
    },
    async stop() {
      await worker?.close()
    },
  }
}
