/**
 * The thread that owns the connection, so that no wait for the disk or for a lock ever stops the event loop of the
 * service. It takes all messages that are there, has them run in as few commits as possible, and posts the answers.
 */
import { closeSync, fdatasyncSync } from 'node:fs'
import { MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import type { Bell } from '../../../store.ts'
import { toWire } from '../errors.ts'
import { Notifier } from '../notifier.ts'
import type { Settings } from '../settings.ts'
import { connect, openLog } from './file.ts'
import { isShared } from './file-guard.ts'
import { GroupCommit } from './group-commit.ts'
import type { Answer, Answers, Request } from './requests.ts'
import { whileBusy } from './while-busy.ts'

/** Deno's port has no `close` and cannot be asked for messages: there each message is a commit of its own. */
const CAN_BE_ASKED: boolean = parentPort instanceof MessagePort

function openFile(settings: Settings, answer: (answers: Answer[], bells: Bell[]) => void) {
  const opened = connect(settings)
  const { db, guard } = opened
  const log = settings.sync === 'full' ? openLog(settings.path) : null
  const bells: Bell[] = []
  const commits = new GroupCommit(opened, settings, log === null ? null : () => fdatasyncSync(log), {
    answer: (answers) => answer(answers, bells.splice(0)),
    committed: (queues) => bells.push(...notifier.committed(queues)),
  })
  const notifier = whileBusy(settings.busyTimeout, () => new Notifier(db, (rung) => answer([], rung)))
  return {
    commits,
    notifier,
    /** False: the connection stays open until the process ends, since closing it would remove the log of another library's. */
    close(): boolean {
      commits.finish()
      notifier.listen(false)
      if (guard.isShared) return false
      db.close()
      if (log !== null) closeSync(log)
      return true
    },
  }
}

function serve(port: MessagePort): void {
  const answer = (answers: Answer[], bells: Bell[]): void => port.postMessage({ answers, bells } satisfies Answers)
  const next = (): Request[] | undefined => (CAN_BE_ASKED ? receiveMessageOnPort(port)?.message : undefined)
  let file: ReturnType<typeof openFile> | undefined

  /** True: no more will come. */
  function take(request: Request): boolean {
    const { seq } = request
    if (request.op === 'open') {
      try {
        file = openFile(request.input, answer)
        answer([{ seq, output: null }], [])
        return false
      } catch (error) {
        answer([{ seq, error: toWire(error, request.input.path) }], [])
        // With the thread, its connection would end.
        return !isShared(error)
      }
    }
    if (request.op === 'close') {
      const ends = file?.close() ?? true
      answer([{ seq, output: ends }], [])
      return ends
    }
    if (request.op === 'listen') file?.notifier.listen(request.input)
    else file?.commits.add(request)
    return false
  }

  port.on('message', (first: Request[]) => {
    // What came while the last commit was made goes into the next one together.
    for (let requests: Request[] | undefined = first; requests; requests = next()) {
      // Once nothing keeps it alive any more, the thread ends.
      if (requests.some(take)) return CAN_BE_ASKED ? port.close() : port.unref()
    }
    file?.commits.run()
  })
}

if (parentPort !== null) serve(parentPort)
