/** The event stream, and what hangs on it. One stream for the page, open while it can be seen. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Point, QueueView, StoreView, Tick } from '../views.ts'
import { ask, messageOf, Refused } from './api.ts'

/** How often longer than an answer took the page waits before it asks the same again: a long search must not keep a store busy. */
const PAUSE = 30
/** Points of each line. */
const MAX_POINTS = 300

export interface Live {
  tick: Tick | undefined
  state: 'connecting' | 'live' | 'lost' | 'login' | 'forbidden'
}

const points = new Map<string, Point[]>()
const listeners = new Set<() => void>()
let live: Live = { tick: undefined, state: 'connecting' }
let source: EventSource | undefined

export const pointsOf = (store: string, queue: string): readonly Point[] => points.get(`${store}\n${queue}`) ?? []

function become(next: Partial<Live>): void {
  live = { ...live, ...next }
  for (const listener of listeners) listener()
}

/** By how much the server's clock is ahead. */
let ahead = 0
export const serverNow = (): number => Date.now() + ahead

function received(tick: Tick, isFirst: boolean): void {
  ahead = tick.at - Date.now()
  for (const [store, queues] of Object.entries(tick.points)) {
    for (const [queue, added] of Object.entries(queues)) {
      const name = `${store}\n${queue}`
      const known = isFirst ? [] : (points.get(name) ?? [])
      points.set(name, [...known, ...added].slice(-MAX_POINTS))
    }
  }
  become({ tick, state: 'live' })
}

export function connect(): void {
  source?.close()
  if (document.hidden) return
  const own = new EventSource('./events')
  source = own
  let isFirst = true
  own.onmessage = ({ data }) => {
    received(JSON.parse(data), isFirst)
    isFirst = false
  }
  own.onerror = () => {
    isFirst = true
    if (own.readyState === EventSource.CLOSED) void whyClosed()
    else if (live.state === 'live') become({ state: 'lost' })
  }
}

/** EventSource tells no status; a call of the API does. */
async function whyClosed(): Promise<void> {
  try {
    await ask('workers', {})
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return become({ state: 'login', tick: undefined })
    if (error instanceof Refused && error.status === 403) return become({ state: 'forbidden', tick: undefined })
  }
  become({ state: 'lost' })
  setTimeout(connect, 3000)
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) source?.close()
  else connect()
})

export function useLive(): Live {
  const [, redraw] = useState(0)
  const drawn = live
  useEffect(() => {
    const changed = () => redraw((n) => n + 1)
    listeners.add(changed)
    // It may have changed since this was drawn.
    if (drawn !== live) changed()
    return () => void listeners.delete(changed)
  }, [])
  return live
}

export const storeOf = ({ tick }: Live, name: string): StoreView | undefined =>
  tick?.stores.find((store) => store.name === name)
export const queueOf = (now: Live, store: string, name: string): QueueView | undefined =>
  storeOf(now, store)?.queues.find((queue) => queue.name === name)

export interface Asked<Answer> {
  answer: Answer | undefined
  fault: string | undefined
  status: number | undefined
  again: () => void
}

interface Found<Answer> {
  topic?: string | undefined
  text?: string
  answer?: Answer | undefined
  fault?: string
  status?: number
}

/**
 * Asks now, at every tick, and when `again` is called; never twice at once. The answer may be to the question before.
 * @param body undefined: not at all
 * @param topic what the answer is about; that to a question about another one is not shown
 */
export function useAsk<Answer>(name: string, body: object | undefined, topic?: string): Asked<Answer> {
  const { tick } = useLive()
  const text = body === undefined ? undefined : JSON.stringify(body)
  const [found, setFound] = useState<Found<Answer>>({})
  const [times, setTimes] = useState(0)
  const asking = useRef<string | undefined>(undefined)
  /** When the same question may be asked again, unless somebody does something. */
  const pause = useRef<{ text: string; times: number; until: number } | undefined>(undefined)
  const wanted = useRef(text)
  wanted.current = text
  // The tick and `times` ask again.
  useEffect(() => {
    if (text === undefined || asking.current === text) return
    const { current: paused } = pause
    const began = performance.now()
    if (paused?.text === text && paused.times === times && began < paused.until) return
    asking.current = text
    ask<Answer>(name, JSON.parse(text))
      .then((answer) => ({ text, answer }))
      .catch((error: unknown) => ({
        text,
        fault: messageOf(error),
        ...(error instanceof Refused && { status: error.status }),
      }))
      .then((next) => {
        if (asking.current === text) asking.current = undefined
        const now = performance.now()
        pause.current = { text, times, until: now + (now - began) * PAUSE }
        // A slow answer must not stand for a later question.
        if (wanted.current === text)
          setFound((last) => ({ topic, answer: last.topic === topic ? last.answer : undefined, ...next }))
      })
  }, [name, text, tick, times])
  const isCurrent = found.text === text
  return {
    // The last answer stays until the next one is there, so that nothing flickers.
    answer: found.topic === topic ? found.answer : undefined,
    fault: isCurrent ? found.fault : undefined,
    status: isCurrent ? found.status : undefined,
    again: () => setTimes((n) => n + 1),
  }
}
