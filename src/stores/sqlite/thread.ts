/**
 * The thread that owns the connection, so that no wait for the disk or for a lock ever stops the event loop of the
 * service. It takes all messages that are there, has them run in as few commits as possible, and posts what became of them.
 */
import { MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { fenceFloor } from './boot.ts'
import { Committer } from './committer.ts'
import { connect } from './connection.ts'
import { Engine } from './engine.ts'
import { toWire } from './errors.ts'
import { Log } from './log.ts'
import type { Request, ThreadMessage } from './protocol.ts'
import type { Settings } from './settings.ts'
import { Watcher } from './watcher.ts'

/** Deno's port has no `close` and cannot be asked for messages: there each message is a commit of its own. */
const CAN_BE_ASKED: boolean = parentPort instanceof MessagePort

function serve(port: MessagePort, settings: Settings): void {
  const post = (message: ThreadMessage): void => port.postMessage(message)
  const next = (): Request[] | undefined => (CAN_BE_ASKED ? receiveMessageOnPort(port)?.message : undefined)
  // Once nothing keeps it alive any more, the thread ends.
  const leave = (): void => (CAN_BE_ASKED ? port.close() : port.unref())
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

  port.on('message', (first: Request[]) => {
    // What came while the last commit was made goes into the next one together.
    for (let requests: Request[] | undefined = first; requests; requests = next()) {
      for (const request of requests) {
        if (request.op === 'close') return close(request.seq)
        if (request.op !== 'listen') committer.add(request)
        else if (request.input) watcher.start()
        else watcher.stop()
      }
    }
    committer.run()
  })
  post({ kind: 'opened' })
}

if (parentPort !== null) serve(parentPort, workerData)
