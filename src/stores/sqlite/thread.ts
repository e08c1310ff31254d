/**
 * The thread that owns the connection, so that no wait for the disk or for a lock ever stops the event loop of the
 * service. It takes all messages that are there, has them run in as few commits as possible, and posts what became of them.
 */
import { availableParallelism } from 'node:os'
import { MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { fenceFloor } from './boot.ts'
import { Committer } from './committer.ts'
import { connect } from './connection.ts'
import { Engine } from './engine.ts'
import { toWire } from './errors.ts'
import { Log } from './log.ts'
import type { Request, ThreadData, ThreadMessage } from './protocol.ts'
import { Watcher } from './watcher.ts'

/** Deno's has no `close` and cannot be asked for messages: there each message is a commit of its own. */
const WHOLE: boolean = parentPort instanceof MessagePort
/**
 * After requests that followed the answers before within `BRISK`, the thread stays awake for up to `AWAKE` to take the next; where nearly all do, for up to
 * `LONG_AWAKE`; in ms. A closed loop of pushers then never waits for it to be woken; where gaps vary, the time is better left to others.
 */
const BRISK = WHOLE && availableParallelism() > 1 ? 0.25 : 0
const AWAKE = 0.06
const LONG_AWAKE = 0.2
/** The share of those within `LONG_AWAKE` from which on it is nearly all, and the weight of each in it. */
const STEADY = 0.9
const WEIGHT = 0.05
/** Rounds of looking for more before the event loop has its own. */
const MOST_ROUNDS = 16

function serve(port: MessagePort, { settings, turn }: ThreadData): void {
  const post = (message: ThreadMessage): void => port.postMessage(message)
  const next = (): Request[] | undefined => (WHOLE ? receiveMessageOnPort(port)?.message : undefined)
  // Once nothing keeps it alive any more, the thread ends.
  const leave = (): void => (WHOLE ? port.close() : port.unref())
  let db: ReturnType<typeof connect>
  let log: Log | null
  let floor: number
  try {
    db = connect(settings)
    floor = fenceFloor(db, settings.busyTimeout)
    log = settings.sync === 'full' ? new Log(settings.path) : null
  } catch (error) {
    post({ kind: 'failed', error: toWire(error, settings.path) })
    leave()
    return
  }
  const engine = new Engine(db, floor)
  const watcher = new Watcher(db, engine.statements, (bells) => post({ kind: 'answers', answers: [], bells }))
  let rung: ThreadMessage & { kind: 'answers' } = { kind: 'answers', answers: [], bells: [] }
  const committer = new Committer(db, engine, settings, log, {
    answer(answers) {
      post({ ...rung, answers })
      rung = { kind: 'answers', answers: [], bells: [] }
    },
    more() {
      const requests = rest()
      if (requests !== undefined) take(requests)
    },
    committed(bells, written) {
      if (!watcher.watching) return
      watcher.own(written)
      rung.bells.push(...bells)
    },
  })

  function close(seq: number): void {
    committer.finish()
    watcher.stop()
    db.close()
    log?.close()
    post({ kind: 'answers', answers: [{ seq, output: null }], bells: [] })
    leave()
  }

  /** The number of the request to close, if there was one. */
  let closing: number | null = null
  function take(first: Request[]): void {
    // What came while the last commit was made goes into the next one together.
    for (let requests: Request[] | undefined = first; requests; requests = next()) {
      for (const request of requests) {
        if (request.op === 'close') closing = request.seq
        else if (request.op !== 'listen') committer.add(request)
        else if (request.input) watcher.start()
        else watcher.stop()
      }
    }
  }

  /** Looks for more without going to sleep: from that it takes as long to be woken as whoever was just answered takes to ask again. */
  function soon(): Request[] | undefined {
    const until = performance.now() + (steadiness > STEADY ? LONG_AWAKE : AWAKE)
    let requests = next()
    while (requests === undefined && performance.now() < until) requests = next()
    return requests
  }

  /** What belongs to what was taken: while that is being made it is waited for. */
  function rest(): Request[] | undefined {
    const until = performance.now() + AWAKE
    while (Atomics.load(turn, 0) === 1 && performance.now() < until) {
      const requests = next()
      if (requests !== undefined) return requests
    }
    return next()
  }

  let done = Number.NEGATIVE_INFINITY
  /** The share of requests, of late, for which it would have paid to stay awake for longer. */
  let steadiness = 0
  function followed(): boolean {
    const gap = performance.now() - done
    steadiness += WEIGHT * (Number(gap < LONG_AWAKE) - steadiness)
    return gap < BRISK
  }

  port.on('message', (first: Request[]) => {
    const brisk = followed()
    let requests: Request[] | undefined = first
    // Now and then the event loop has its turn, for timers.
    for (let round = 0; requests !== undefined; round++) {
      take(requests)
      if (closing === null) committer.run()
      if (closing !== null) return close(closing)
      done = performance.now()
      requests = brisk && round < MOST_ROUNDS ? soon() : undefined
      if (requests !== undefined) followed()
    }
  })
  post({ kind: 'opened', joins: WHOLE })
}

if (parentPort !== null) serve(parentPort, workerData)
