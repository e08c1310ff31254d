/**
 * Runs requests on the connection, in the order in which they came.
 *
 *   no transaction open ── job requests ──► all that are there in one commit (or by reading alone) ──► answered together
 *           │  ▲
 *     query │  │ commitWith, rollback, idle for too long, given up by SQLite
 *           ▼  │
 *   a handler's transaction open: its own requests run at once; all others wait
 *
 * One commit for many requests is one wait for the disk. If one of them throws, all is undone and each is run by itself,
 * so that its error stays its own.
 */
import type { DatabaseSync } from 'node:sqlite'
import { MillpondError } from '../../errors.ts'
import { safeText } from '../../safe-error.ts'
import type { Bell } from '../../store.ts'
import { whileBusy } from './connection.ts'
import type { Engine } from './engine.ts'
import { toWire } from './errors.ts'
import { HandlerTransaction } from './handler-transaction.ts'
import type { Written } from './ledger.ts'
import type { Log } from './log.ts'
import { isReadable, isRepeatable, performAll, read, weight } from './perform.ts'
import type { Answer, JobRequest, Request, TransactionRequest } from './protocol.ts'
import type { Settings } from './settings.ts'

/** Most jobs in one commit: a commit holds up every request that comes after it. */
const MOST_JOBS = 5_000

export interface Reports {
  /** Answers are ready to be posted. */
  answer(answers: Answer[]): void
  /** A commit was made. */
  committed(bells: Bell[], written: Written[]): void
}

const isTransactional = (request: Request): request is TransactionRequest =>
  request.op === 'query' || request.op === 'pushWithin' || request.op === 'commitWith' || request.op === 'rollback'

const isOnJobs = (request: Request): request is JobRequest =>
  !isTransactional(request) && request.op !== 'listen' && request.op !== 'close'

export class Committer {
  readonly #db: DatabaseSync
  readonly #engine: Engine
  readonly #settings: Settings
  readonly #log: Pick<Log, 'sync'> | null
  readonly #reports: Reports
  readonly #begin
  readonly #commit
  #waiting: Request[] = []
  #transaction: HandlerTransaction | null = null
  /** Transactions that ended without the handler's doing, and why. */
  readonly #broken = new Map<number, string>()
  #closing = false

  /** @param log null: commits wait for no disk */
  constructor(db: DatabaseSync, engine: Engine, settings: Settings, log: Pick<Log, 'sync'> | null, reports: Reports) {
    this.#db = db
    this.#engine = engine
    this.#settings = settings
    this.#log = log
    this.#reports = reports
    this.#begin = db.prepare('begin immediate')
    this.#commit = db.prepare('commit')
  }

  add(request: Request): void {
    this.#waiting.push(request)
  }

  /** Does all that can be done now. */
  run(): void {
    for (;;) {
      if (this.#transaction !== null) {
        this.#runOpen(this.#transaction)
        if (this.#transaction !== null) return
      }
      const [head] = this.#waiting
      if (head === undefined) return
      if (isTransactional(head)) {
        this.#waiting.shift()
        this.#enter(head)
      } else {
        this.#runGroup(this.#takeGroup())
      }
    }
  }

  /** Runs what came before, rolls back what a handler left open, and lets nothing more in. */
  finish(): void {
    this.#closing = true
    this.run()
  }

  #takeGroup(): JobRequest[] {
    const group: JobRequest[] = []
    let jobs = 0
    let taken = 0
    for (const request of this.#waiting) {
      if (!isOnJobs(request) || jobs >= MOST_JOBS) break
      group.push(request)
      jobs += weight(request)
      taken++
    }
    this.#waiting = this.#waiting.slice(taken)
    return group
  }

  #runGroup(group: JobRequest[]): void {
    const answers: Answer[] = []
    const writing = group.every(isReadable) ? this.#readAll(group, answers) : group
    if (writing.length > 0) this.#commitAll(writing, answers)
    this.#reports.answer(answers)
  }

  /** Answers what reading can answer; returns the rest. */
  #readAll(group: readonly JobRequest[], answers: Answer[]): JobRequest[] {
    return group.filter((request) => {
      const { seq } = request
      try {
        const output = whileBusy(this.#settings.busyTimeout, () => read(this.#engine, request))
        if (output === undefined) return true
        answers.push({ seq, output })
      } catch (error) {
        answers.push(this.#rejected(request, error))
      }
      return false
    })
  }

  #commitAll(group: readonly JobRequest[], answers: Answer[]): void {
    let done: Answer[]
    let failed = false
    try {
      this.#beginNow()
      try {
        done = performAll(this.#engine, group)
      } catch (error) {
        failed = group.length > 1
        throw error
      }
      this.#commitNow()
    } catch (error) {
      this.#undo()
      if (failed) for (const request of group) this.#commitAll([request], answers)
      else for (const request of group) answers.push(this.#rejected(request, error))
      return
    }
    this.#answerSynced(group, done, answers)
  }

  /**
   * What a power cut may undo is answered at once, the rest when it is on the disk: so an idle worker begins with a job that was
   * just pushed while its pusher waits for the disk still.
   */
  #answerSynced(group: readonly JobRequest[], done: readonly Answer[], answers: Answer[]): void {
    const lasting = group.map((request) => !isRepeatable(request))
    if (this.#log === null || !lasting.includes(true)) {
      answers.push(...done)
      return
    }
    if (lasting.includes(false)) {
      this.#reports.answer([...answers.splice(0), ...done.filter((_, at) => !lasting[at])])
    }
    const late = done.filter((_, at) => lasting[at])
    try {
      this.#syncNow()
      answers.push(...late)
    } catch (error) {
      answers.push(...late.map((answer) => this.#rejected(answer, error)))
    }
  }

  #syncNow(): void {
    try {
      this.#log?.sync()
    } catch (cause) {
      const { path } = this.#settings
      const message = `the disk of ${path} failed: what this call did may or may not last; see to the disk, then try again`
      throw new MillpondError('StoreFailed', message, { cause })
    }
  }

  #beginNow(): void {
    this.#engine.ledger.discard()
    whileBusy(this.#settings.busyTimeout, () => this.#begin.run())
  }

  #commitNow(): void {
    this.#engine.settle()
    this.#commit.run()
    const { bells, written } = this.#engine.ledger.take()
    this.#reports.committed(bells, written)
  }

  #undo(): void {
    this.#engine.ledger.discard()
    try {
      // Some errors, such as a full disk, make SQLite roll back by itself.
      if (this.#db.isTransaction) this.#db.exec('rollback')
    } catch {
      // What is wrong with the connection is told by the error that led here, and again by the next call.
    }
  }

  #rejected({ seq }: { seq: number }, error: unknown): Answer {
    return { seq, error: toWire(error, this.#settings.path) }
  }

  /** A request of a transaction that isn't open: begins it, or tells why it is over. */
  #enter(request: TransactionRequest): void {
    const { transaction } = request.input
    const broken = this.#broken.get(transaction)
    if (request.op === 'rollback' || request.op === 'commitWith') this.#broken.delete(transaction)
    if (request.op === 'rollback') {
      this.#reports.answer([{ seq: request.seq, output: null }])
      return
    }
    if (broken !== undefined || request.op === 'commitWith') {
      const why = broken ?? 'it is not open'
      const error = new MillpondError('TransactionMismatch', `the handler's transaction cannot go on: ${why}`)
      this.#reports.answer([this.#rejected(request, error)])
      return
    }
    try {
      this.#beginNow()
    } catch (error) {
      this.#broken.set(transaction, 'it could not begin')
      this.#reports.answer([this.#rejected(request, error)])
      return
    }
    const { transactionTimeout } = this.#settings
    this.#transaction = new HandlerTransaction(transaction, this.#db, this.#engine, transactionTimeout, () => {
      this.#breakOff(`it was open for ${transactionTimeout} ms and was rolled back, to let others write`)
      this.run()
    })
    this.#waiting.unshift(request)
  }

  #runOpen(open: HandlerTransaction): void {
    const others: Request[] = []
    const own: TransactionRequest[] = []
    for (const request of this.#waiting) {
      if (isTransactional(request) && request.input.transaction === open.number) own.push(request)
      else others.push(request)
    }
    this.#waiting = others
    for (const request of own) {
      // It may have ended by the request before this one.
      if (this.#transaction === open) this.#reports.answer([this.#runOwn(open, request)])
      else this.#enter(request)
    }
    if (this.#closing && this.#transaction === open) this.#breakOff('the store was closed')
  }

  #runOwn(open: HandlerTransaction, request: TransactionRequest): Answer {
    const { seq } = request
    try {
      if (request.op === 'query') return { seq, output: open.query(request.input.text, request.input.params) }
      if (request.op === 'pushWithin') return { seq, output: open.push(request.input.flat, request.now ?? Date.now()) }
      this.#leave(open)
      const stale = request.op === 'commitWith' && open.complete(request) === 'stale'
      if (request.op === 'commitWith' && !stale) {
        this.#commitNow()
        this.#syncNow()
      } else this.#undo()
      return { seq, output: request.op === 'rollback' ? null : stale ? 'stale' : 'ok' }
    } catch (error) {
      if (this.#transaction !== open) this.#undo()
      else if (!this.#db.isTransaction) this.#breakOff(`SQLite rolled it back: ${safeText(error)}`)
      return this.#rejected(request, error)
    }
  }

  #leave(open: HandlerTransaction): void {
    open.stopTimer()
    this.#transaction = null
  }

  #breakOff(why: string): void {
    if (this.#transaction === null) return
    this.#broken.set(this.#transaction.number, why)
    this.#leave(this.#transaction)
    this.#undo()
  }
}
