/**
 * The thread that owns the connection, so that no wait for the disk or for a lock ever stops the event loop of the
 * service. It takes all messages that are there, has them run in as few commits as possible, and posts the answers.
 */
import { closeSync, fdatasyncSync } from 'node:fs'
import { MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Bell } from '../../../store.ts'
import { toWire } from '../errors.ts'
import { Notifier } from '../notifier.ts'
import type { Settings } from '../settings.ts'
import { fenceFloor } from './fence-floor.ts'
import { connect, openLog } from './file.ts'
import { GroupCommit } from './group-commit.ts'
import type { Answer, Request, ThreadMessage } from './requests.ts'

/** Deno's port has no `close` and cannot be asked for messages: there each message is a commit of its own. */
const CAN_BE_ASKED: boolean = parentPort instanceof MessagePort

function openFile(settings: Settings) {
  const db = connect(settings)
  const floor = fenceFloor(db, settings.busyTimeout)
  return { db, floor, log: settings.sync === 'full' ? openLog(settings.path) : null }
}

function serve(port: MessagePort, settings: Settings): void {
  const post = (message: ThreadMessage): void => port.postMessage(message)
  const next = (): Request[] | undefined => (CAN_BE_ASKED ? receiveMessageOnPort(port)?.message : undefined)
  // Once nothing keeps it alive any more, the thread ends.
  const leave = (): void => (CAN_BE_ASKED ? port.close() : port.unref())
  let file: ReturnType<typeof openFile>
  try {
    file = openFile(settings)
  } catch (error) {
    post({ kind: 'failed', error: toWire(error, settings.path) })
    leave()
    return
  }
  const { db, floor, log } = file
  let bells: Bell[] = []
  const answer = (answers: Answer[]): void => {
    post({ kind: 'answers', answers, bells })
    bells = []
  }
  const commits = new GroupCommit(db, floor, settings, log === null ? null : () => fdatasyncSync(log), {
    answer,
    committed: (queues) => bells.push(...notifier.committed(queues)),
  })
  const notifier = new Notifier(db, commits.statements, (rung) => {
    bells.push(...rung)
    answer([])
  })

  function close(seq: number): void {
    commits.finish()
    notifier.listen(false)
    db.close()
    if (log !== null) closeSync(log)
    answer([{ seq, output: null }])
    leave()
  }

  port.on('message', (first: Request[]) => {
    // What came while the last commit was made goes into the next one together.
    for (let requests: Request[] | undefined = first; requests; requests = next()) {
      for (const request of requests) {
        if (request.op === 'close') return close(request.seq)
        if (request.op === 'listen') notifier.listen(request.input)
        else commits.add(request)
      }
    }
    commits.run()
  })
  post({ kind: 'opened' })
}

if (parentPort !== null) serve(parentPort, workerData)
