/**
 * The event stream of a page. All pages share the pollers; each gets what its caller may see. Nothing is buffered: an
 * event is made when the reader asks for it, of what was seen last.
 */

import type { Poller, SeenStore } from './poller.ts'
import type { Caller } from './rights.ts'
import type { Point, QueueView, StoreView, Tick } from './views.ts'

/** Milliseconds after which a comment keeps the connection alive. */
const HEARTBEAT = 15_000
/** Milliseconds after which the stream ends. The browser comes back by itself, and its rights are looked at again. */
const LIFETIME = 5 * 60_000

export interface StreamOptions {
  pollers: ReadonlyMap<string, Poller>
  caller: Caller
  /** Aborted when the client leaves or the pond closes. */
  signals: readonly AbortSignal[]
  /** Called once, at the end. */
  ended: () => void
}

export function tickStream({ pollers, caller, signals, ended }: StreamOptions): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const signal = AbortSignal.any([...signals])
  const unfollow: (() => void)[] = []
  let open = true
  let isFirst = true
  /** Something was seen since the last event. */
  let fresh = false
  let wake = () => {}
  let lifetime: NodeJS.Timeout | undefined
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined

  const end = () => {
    if (!open) return
    open = false
    clearTimeout(lifetime)
    signal.removeEventListener('abort', end)
    for (const leave of unfollow) leave()
    controller?.close()
    wake()
    ended()
  }
  const seen = () => {
    fresh = true
    wake()
  }

  return new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
        lifetime = setTimeout(end, LIFETIME).unref()
        signal.addEventListener('abort', end)
        for (const poller of pollers.values()) unfollow.push(poller.follow(seen))
        if (signal.aborted) end()
      },
      async pull(given) {
        const isNews = await news()
        if (!open) return
        if (!isNews) {
          given.enqueue(encoder.encode(': still here\n\n'))
          return
        }
        fresh = false
        const tick = tickOf(pollers, caller, isFirst)
        // Until every store was asked once, there is nothing to show.
        if (tick === undefined) given.enqueue(encoder.encode(': asking\n\n'))
        else {
          isFirst = false
          given.enqueue(encoder.encode(`data: ${JSON.stringify(tick)}\n\n`))
        }
      },
      cancel() {
        // It is closed already.
        controller = undefined
        end()
      },
    },
    { highWaterMark: 0 },
  )

  /** Whether something was seen within the time of a heartbeat. */
  function news(): Promise<boolean> {
    if (fresh || !open) return Promise.resolve(true)
    return new Promise((resolve) => {
      const beat = setTimeout(() => resolve(false), HEARTBEAT)
      wake = () => {
        clearTimeout(beat)
        resolve(true)
      }
    })
  }
}

function tickOf(pollers: ReadonlyMap<string, Poller>, caller: Caller, isFirst: boolean): Tick | undefined {
  const stores: StoreView[] = []
  const points: Tick['points'] = {}
  for (const [name, poller] of pollers) {
    if (poller.latest === undefined) return undefined
    const store = visible(name, poller.latest, caller)
    const own: Record<string, Point[]> = Object.create(null)
    for (const queue of store.queues) {
      own[queue.name] = isFirst ? poller.history.points(queue.name) : latest(poller.latest, queue.name)
    }
    stores.push(store)
    points[name] = own
  }
  return { at: Date.now(), who: caller.who, isSession: caller.isSession, stores, points }
}

const latest = (seen: SeenStore, queue: string): Point[] => {
  const point = seen.points.get(queue)
  return point === undefined ? [] : [point]
}

function visible(name: string, { points: _, ...seen }: SeenStore, caller: Caller): StoreView {
  const queues = seen.queues.flatMap((queue): QueueView[] => {
    const may = caller.may(name, queue.name)
    return may === undefined ? [] : [{ ...queue, may }]
  })
  const shown = new Set(queues.map((queue) => queue.name))
  return { ...seen, name, queues, attention: seen.attention.filter(({ queue }) => shown.has(queue)) }
}
