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
/** While requests follow answers within `BRISK`, the thread stays awake for up to `AWAKE` to take the next; in ms. */
const BRISK = WHOLE && availableParallelism() > 1 ? 0.25 : 0
const AWAKE = 0.06
/** Turns of looking for more before the event loop has its own. */
const MOST_TURNS = 16

function serve(port: MessagePort, { settings }: ThreadData): void {
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

  /** @returns the number of the request to close, if that was among them */
  function take(first: Request[]): number | null {
    let closing: number | null = null
    // What came while the last commit was made goes into the next one together.
    for (let requests: Request[] | undefined = first; requests; requests = next()) {
      for (const request of requests) {
        if (request.op === 'close') closing = request.seq
        else if (request.op !== 'listen') committer.add(request)
        else if (request.input) watcher.start()
        else watcher.stop()
      }
    }
    return closing
  }

  /** Looks for more without going to sleep: from that it takes as long to be woken as whoever was just answered takes to ask again. */
  function soon(): Request[] | undefined {
    const until = performance.now() + AWAKE
    let requests = next()
    while (requests === undefined && performance.now() < until) requests = next()
    return requests
  }

  let done = Number.NEGATIVE_INFINITY
  port.on('message', (first: Request[]) => {
    const brisk = performance.now() - done < BRISK
    let requests: Request[] | undefined = first
    // Now and then the event loop has its turn, for timers.
    for (let turn = 0; requests !== undefined; turn++) {
      const closing = take(requests)
      if (closing !== null) return close(closing)
      committer.run()
      done = performance.now()
      requests = brisk && turn < MOST_TURNS ? soon() : undefined
    }
  })
  post({ kind: 'opened' })
}

if (parentPort !== null) serve(parentPort, workerData)
