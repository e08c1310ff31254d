/**
 * Runs requests on the connection, in the order in which they came.
 *
 *   no transaction open ── operations ──► all that are there in one commit ──► answered together
 *           │  ▲
 *     query,│  │ complete, rollback, open for too long, given up by SQLite
 *      push ▼  │
 *   a handler's transaction open: its own requests run at once; all others wait
 *
 * One commit for many requests is one wait for the disk. If one of them throws, all is undone and each is run by itself,
 * so that its error stays its own.
 */
import { MillpondError } from '../../../values/errors/errors.ts'
import { safeText } from '../../../values/errors/safe-error.ts'
import { isFull, isResult, toWire } from '../errors.ts'
import { pushWithin } from '../operations/push.ts'
import { type Queue, Queues, type StoreContext } from '../queues.ts'
import type { Settings } from '../settings.ts'
import type { Database } from './database.ts'
import type { Opened } from './file.ts'
import type { FileGuard } from './file-guard.ts'
import type { LogRoom } from './log-room.ts'
import type { Answer, Inputs, Operation, Request, RequestOf } from './requests.ts'
import { Statements } from './statements.ts'
import { OPERATIONS, READING } from './thread-operations.ts'
import { begin, whileBusy } from './while-busy.ts'

type OperationRequest = RequestOf<Operation>

/**
 * Those that a power cut may undo: then every worker on the machine is gone, too, and the job is claimed, or swept, anew.
 * They are answered before the commit is on the disk. A park is none: what is written with it is to last as an entry.
 */
const REPEATABLE: ReadonlySet<string> = new Set(['claim', 'release', 'extend', 'sweep', 'record', 'heartbeat'])
const isRepeatable = ({ op, input }: OperationRequest): boolean =>
  REPEATABLE.has(op) && !(op === 'release' && input.items.some(({ park }) => park !== undefined))

const isOperation = (request: Request): request is OperationRequest => Object.hasOwn(OPERATIONS, request.op)

const HANDLERS: { [O in Operation]: (context: StoreContext, input: Inputs[O]) => unknown } = OPERATIONS

interface Reports {
  /** Called with answers that can be sent to the main thread. */
  answer(answers: Answer[]): void
  /** A commit was made that changed queues. */
  committed(queues: Queue[]): void
}

/** What ends a handler's transaction. */
const ENDS: ReadonlySet<string> = new Set(['complete', 'journal', 'rollback'])

export class GroupCommit {
  readonly #db: Database
  readonly #guard: FileGuard
  readonly #logRoom: LogRoom
  readonly #settings: Settings
  readonly #sync: (() => void) | null
  readonly #reports: Reports
  readonly #context: Omit<StoreContext, 'now'>
  readonly #waiting: Request[] = []
  /** A handler's transaction. It holds up every writer, extensions of leases among them, so its time is bounded as a whole. */
  #open: { number: number; timer: NodeJS.Timeout } | null = null
  /** Transactions that ended without the handler's doing, and why. */
  readonly #broken = new Map<number, string>()

  /** @param sync brings all commits to the disk; null: nobody waits for it */
  constructor({ db, guard, fences, logRoom }: Opened, settings: Settings, sync: (() => void) | null, reports: Reports) {
    const statements = new Statements(db)
    whileBusy(settings.busyTimeout, () => statements.run('claim/picks'))
    this.#context = { statements, queues: new Queues(statements), fences }
    this.#guard = guard
    this.#logRoom = logRoom
    this.#db = db
    this.#settings = settings
    this.#sync = sync
    this.#reports = reports
  }

  add(request: Request): void {
    this.#waiting.push(request)
  }

  /** Does all that can be done now. */
  run(): void {
    for (;;) {
      const number = this.#open?.number
      const at = number === undefined ? 0 : this.#waiting.findIndex(({ transaction }) => transaction === number)
      const request = this.#waiting[at]
      if (request === undefined) return
      if (request.transaction === undefined) {
        const end = this.#waiting.findIndex(({ transaction }) => transaction !== undefined)
        const group = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
        const answers: Answer[] = []
        this.#commitAll(group.filter(isOperation), answers)
        this.#reports.answer(answers)
      } else {
        this.#waiting.splice(at, 1)
        this.#reports.answer([this.#runOwn(request, request.transaction)])
      }
    }
  }

  /** Runs what came before, and rolls back what a handler left open. */
  finish(): void {
    for (this.run(); this.#open !== null; this.run()) this.#breakOff('the store was closed')
  }

  /**
   * @param locking whether to take the lock for writing at once; otherwise SQLite takes it at the first write, if it can
   * @param mayMakeRoom on a full disk, and then try again
   */
  #commitAll(
    group: readonly OperationRequest[],
    answers: Answer[],
    { locking = !group.every(({ op }) => READING.has(op)), mayMakeRoom = true } = {},
  ): void {
    let done: Answer[]
    let isRunning = false
    try {
      this.#begin(locking)
      isRunning = true
      done = group.map((request) => ({ seq: request.seq, output: this.#execute(request) }))
      isRunning = false
      this.#commit()
    } catch (error) {
      this.#undo()
      if (!locking && isResult(error, 'BUSY', 5)) this.#commitLater(group, answers)
      else if (mayMakeRoom && isFull(error) && this.#logRoom.make())
        this.#commitAll(group, answers, { locking, mayMakeRoom: false })
      else if (isRunning && group.length > 1)
        for (const request of group) this.#commitAll([request], answers, { mayMakeRoom })
      else answers.push(...group.map(({ seq }) => this.#rejected(seq, error)))
      return
    }
    const needsDisk = locking && this.#sync !== null ? group.filter((request) => !isRepeatable(request)) : []
    this.#answerSynced(done, new Set(needsDisk.map(({ seq }) => seq)), answers)
  }

  /**
   * What began without the lock has met somebody who has it. Heartbeats do not wait, and are made another time: the
   * application may hold the lock, and wait for an answer behind them.
   */
  #commitLater(group: readonly OperationRequest[], answers: Answer[]): void {
    const waiting = group.filter(({ op }) => op !== 'heartbeat')
    for (const request of group) {
      if (request.op === 'heartbeat') answers.push({ seq: request.seq, output: request.input.workers.map(() => false) })
    }
    if (waiting.length > 0) this.#commitAll(waiting, answers, { locking: waiting.length === group.length })
  }

  /**
   * What a power cut may undo is answered at once, the rest when it is on the disk: so an idle worker begins with a job that was
   * just pushed while its pusher still waits for the disk.
   */
  #answerSynced(done: readonly Answer[], needsDisk: ReadonlySet<number>, answers: Answer[]): void {
    answers.push(...done.filter(({ seq }) => !needsDisk.has(seq)))
    if (needsDisk.size === 0) return
    if (needsDisk.size < done.length) this.#reports.answer(answers.splice(0))
    const lasting = done.filter(({ seq }) => needsDisk.has(seq))
    try {
      this.#syncNow()
      answers.push(...lasting)
    } catch (error) {
      answers.push(...lasting.map(({ seq }) => this.#rejected(seq, error)))
    }
  }

  #contextOf({ now }: { now: number | null }): StoreContext {
    return { ...this.#context, now: now ?? Date.now() }
  }

  #execute<O extends Operation>(request: RequestOf<O>): unknown {
    return HANDLERS[request.op](this.#contextOf(request), request.input)
  }

  #begin(locking: boolean): void {
    this.#context.queues.discard()
    this.#guard.check()
    this.#logRoom.adjust()
    begin(this.#db, this.#settings.busyTimeout, locking ? 'begin immediate' : 'begin')
  }

  #commit(): void {
    this.#context.queues.write()
    this.#db.exec('commit')
    const changed = this.#context.queues.take()
    if (changed.length > 0) this.#reports.committed(changed)
  }

  #syncNow(): void {
    try {
      this.#sync?.()
    } catch (cause) {
      const { path } = this.#settings
      const message = `the disk of ${path} failed: what this call did may or may not last; see to the disk, then try again`
      throw new MillpondError('StoreFailed', message, { cause })
    }
    // On the disk, but perhaps in a file that nobody finds again.
    this.#guard.check()
  }

  #undo(): void {
    this.#leave()
    this.#context.queues.discard()
    try {
      // Some errors, such as a full disk, make SQLite roll back by itself.
      if (this.#db.isTransaction) this.#db.exec('rollback')
    } catch {
      // What is wrong with the connection is told by the error that led here, and again by the next call.
    }
  }

  #rejected(seq: number, error: unknown): Answer {
    return { seq, error: toWire(error, this.#settings.path) }
  }

  /** A request of a handler's transaction, which its first one begins. */
  #runOwn(request: Request, number: number): Answer {
    const { seq } = request
    try {
      return { seq, output: this.#outputOf(request, number) }
    } catch (error) {
      if (this.#open === null) this.#undo()
      else if (!this.#db.isTransaction) this.#breakOff(`SQLite rolled it back: ${safeText(error)}`)
      if (isFull(error) && !this.#db.isTransaction) this.#logRoom.make()
      return this.#rejected(seq, error)
    }
  }

  #outputOf(request: Request, number: number): unknown {
    const why = this.#broken.get(number)
    if (ENDS.has(request.op)) this.#broken.delete(number)
    if (request.op === 'rollback') {
      this.#undo()
      return null
    }
    if (why !== undefined)
      throw new MillpondError('TransactionMismatch', `the handler's transaction cannot go on: ${why}`)
    if (this.#open === null) this.#enter(number)
    if (request.op === 'query') return this.#db.query(request.input.text, request.input.params)
    if (request.op === 'configure') return OPERATIONS.configure(this.#contextOf(request), request.input)
    if (request.op === 'push') return pushWithin(this.#contextOf(request), request.input)
    this.#leave()
    if (request.op === 'journal') {
      const outcomes = OPERATIONS.journal(this.#contextOf(request), request.input)
      this.#endOwn(outcomes.every((outcome) => outcome === 'ok'))
      return outcomes
    }
    if (request.op !== 'complete') throw new Error(`millpond: ${request.op} in a handler's transaction`)
    const stale = OPERATIONS.complete(this.#contextOf(request), request.input)
    this.#endOwn(stale.length === 0)
    return stale
  }

  #endOwn(commits: boolean): void {
    if (commits) {
      this.#commit()
      this.#syncNow()
    } else this.#undo()
  }

  #enter(number: number): void {
    this.#broken.set(number, 'it could not begin')
    this.#begin(true)
    this.#broken.delete(number)
    const { transactionTimeout } = this.#settings
    const timer = setTimeout(() => {
      this.#breakOff(`it was open for ${transactionTimeout} ms and was rolled back, to let others write`)
      this.run()
    }, transactionTimeout)
    this.#open = { number, timer }
  }

  #leave(): void {
    clearTimeout(this.#open?.timer)
    this.#open = null
  }

  #breakOff(why: string): void {
    if (this.#open !== null) this.#broken.set(this.#open.number, why)
    this.#undo()
  }
}
