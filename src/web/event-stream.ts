/**
 * A followed job as server-sent events. Each event holds the whole job, so that nothing has to be replayed after a reconnect.
 *
 *   state     first, and whenever state, attempt or times change
 *   progress  only the progress changed
 *   done      the job is final; the last event
 *   gone      the store does not know the job any more; the last event
 *
 * Nothing is buffered: an event is made when the reader asks for it, of the job as it was seen last.
 */
import type { JobInfo } from '../values/job.ts'
import { jsonText } from './answer.ts'
import { isFinal, type JobView, jobView } from './job-view.ts'
import type { Watcher } from './watcher.ts'

/** The id of a last event. A browser that reconnects sends it back. */
export const LAST_EVENT_ID = 'last'

export interface EventStreamOptions {
  watcher: Watcher
  signal: AbortSignal
  /** Milliseconds between comments that keep the connection alive while nothing happens. */
  heartbeat: number
  /** Milliseconds after which the stream ends; browsers reconnect by themselves. */
  lifetime: number
  view: (job: JobInfo) => Promise<JobView>
  /** Called once, at the end; with the error that ended it, if any. */
  ended: (error?: unknown) => void
}

export function eventStream(first: JobInfo, options: EventStreamOptions): ReadableStream<Uint8Array> {
  const { watcher, signal, heartbeat, lifetime, view, ended } = options
  const encoder = new TextEncoder()
  let seen: JobInfo | undefined = first
  let sent: JobInfo | undefined
  let open = true
  /** The job was looked at since the last comparison. */
  let fresh = false
  let wake = () => {}
  let unfollow = () => {}
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let timer: NodeJS.Timeout | undefined

  /** Called by listeners and timers, so it must not throw. */
  const end = (error?: unknown) => {
    if (!open) return
    open = false
    clearTimeout(timer)
    signal.removeEventListener('abort', leave)
    unfollow()
    controller?.close()
    wake()
    ended(error)
  }
  const leave = () => end()

  /** The next event, and whether it is the last; undefined if nothing changed. */
  const next = async (): Promise<{ text: string; last: boolean } | undefined> => {
    fresh = false
    const job = seen
    if (job === undefined) return { text: event('gone', { id: first.id }, LAST_EVENT_ID), last: true }
    const name = sent === undefined ? 'state' : changed(sent, job)
    if (name === undefined) return undefined
    sent = job
    const last = isFinal(job)
    return { text: event(last ? 'done' : name, await view(job), last ? LAST_EVENT_ID : undefined), last }
  }

  return new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
        timer = setTimeout(leave, lifetime)
        signal.addEventListener('abort', leave)
        unfollow = watcher.follow(first.id, {
          seen: (job) => {
            seen = job
            fresh = true
            wake()
          },
          failed: end,
        })
        if (signal.aborted) leave()
      },
      async pull(given) {
        try {
          while (open) {
            const found = await next()
            if (!open) return
            if (found !== undefined || !(await news())) {
              if (open) given.enqueue(encoder.encode(found?.text ?? ': still here\n\n'))
              if (found?.last === true) end()
              return
            }
          }
        } catch (error) {
          // The throw breaks the stream, which must not be closed then.
          controller = undefined
          end(error)
          throw error
        }
      },
      cancel() {
        // It is closed already.
        controller = undefined
        leave()
      },
    },
    { highWaterMark: 0 },
  )

  /** Whether the job was looked at within the time of a heartbeat, or the stream has ended. */
  function news(): Promise<boolean> {
    if (fresh) return Promise.resolve(true)
    return new Promise((resolve) => {
      const beat = setTimeout(() => resolve(false), heartbeat)
      wake = () => {
        clearTimeout(beat)
        resolve(true)
      }
    })
  }
}

function event(name: string, data: JobView | { id: string }, id?: string): string {
  return `event: ${name}\n${id === undefined ? '' : `id: ${id}\n`}data: ${jsonText(data)}\n\n`
}

function changed(before: JobInfo, now: JobInfo): 'state' | 'progress' | undefined {
  const [a, b] = [jobView(before), jobView(now)]
  if (jsonText({ ...a, progress: 0 }) !== jsonText({ ...b, progress: 0 })) return 'state'
  return jsonText(a.progress ?? null) === jsonText(b.progress ?? null) ? undefined : 'progress'
}
