/**
 * The thread that owns the connection, so that no wait for the disk or for a lock ever stops the event loop of the
 * service. It takes all messages that are there, has them run in as few commits as possible, and posts what became of them.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Committer } from './committer.ts'
import { connect } from './connection.ts'
import { Engine } from './engine.ts'
import { toWire } from './errors.ts'
import { Log } from './log.ts'
import type { Request, ThreadData, ThreadMessage } from './protocol.ts'
import { Watcher } from './watcher.ts'

function serve(port: MessagePort, { settings }: ThreadData): void {
  const post = (message: ThreadMessage): void => port.postMessage(message)
  let db: ReturnType<typeof connect>
  let log: Log | null
  try {
    db = connect(settings)
    log = settings.sync === 'full' ? new Log(settings.path) : null
  } catch (error) {
    post({ kind: 'failed', error: toWire(error, settings.path) })
    port.close()
    return
  }
  const engine = new Engine(db)
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
    port.close()
  }

  port.on('message', (first: Request[]) => {
    let closing: number | null = null
    // What came while the last commit was made goes into the next one together.
    for (let requests: Request[] | undefined = first; requests; requests = receiveMessageOnPort(port)?.message) {
      for (const request of requests) {
        if (request.op === 'close') closing = request.seq
        else if (request.op !== 'listen') committer.add(request)
        else if (request.input) watcher.start()
        else watcher.stop()
      }
    }
    if (closing === null) committer.run()
    else close(closing)
  })
  post({ kind: 'opened' })
}

if (parentPort !== null) serve(parentPort, workerData)
