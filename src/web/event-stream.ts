/**
 * A followed job as server-sent events. Each event holds the whole job, so that nothing has to be replayed after a reconnect.
 *
 *   state     first, and whenever state, attempt or times change
 *   progress  only the progress or the log changed
 *   done      the job is final; the last event
 *   gone      the store does not know the job any more; the last event
 *
 * Nothing is buffered: an event is made when the reader asks for it, of the job as it was seen last.
 */
import type { JobInfo } from '../values/jobs/job.ts'
import { isFinal } from './job-view.ts'
import { eventOf, rendered } from './rendered-job.ts'
import type { Watcher } from './watcher.ts'

/** The id of a last event. A browser that reconnects sends it back. */
export const LAST_EVENT_ID = 'last'

const HEARTBEAT = Buffer.from(': still here\n\n')

export interface EventStreamOptions {
  watcher: Watcher
  signal: AbortSignal
  /** Milliseconds between comments that keep the connection alive while nothing happens. */
  heartbeat: number
  /** Milliseconds after which the stream ends; browsers reconnect by themselves. */
  lifetime: number
  /** When a job that waits is expected to start. */
  expectedStart: (job: JobInfo) => Promise<string | undefined>
  /** Called once, at the end; with the error that ended it, if any. */
  ended: (error?: unknown) => void
}

export function eventStream(first: JobInfo, options: EventStreamOptions): ReadableStream<Uint8Array> {
  const { watcher, signal, heartbeat, lifetime, expectedStart, ended } = options
  const { id } = first
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
  const next = async (): Promise<{ bytes: Uint8Array; last: boolean } | undefined> => {
    fresh = false
    const job = seen
    if (job === undefined) return { bytes: eventOf('gone', LAST_EVENT_ID, { id }), last: true }
    const name = sent === undefined ? 'state' : changed(sent, job)
    // Also if it is the same: the older one need not be kept.
    sent = job
    if (name === undefined) return undefined
    const start = await expectedStart(job)
    if (!isFinal(job)) return { bytes: rendered(job).event(name, undefined, start), last: false }
    return { bytes: rendered(job).event('done', LAST_EVENT_ID, start), last: true }
  }

  return new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
        timer = setTimeout(leave, lifetime)
        signal.addEventListener('abort', leave)
        unfollow = watcher.follow(id, {
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
              if (open) given.enqueue(found?.bytes ?? HEARTBEAT)
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

function changed(before: JobInfo, now: JobInfo): 'state' | 'progress' | undefined {
  const [a, b] = [rendered(before), rendered(now)]
  if (a.tag === b.tag) return undefined
  return a.stateTag === b.stateTag ? 'progress' : 'state'
}
