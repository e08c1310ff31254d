/**
 * Runs requests on the connection, in the order in which they came.
 *
 *   no transaction open ── operations ──► all that are there in one commit (or by reading alone) ──► answered together
 *           │  ▲
 *     query,│  │ complete, rollback, open for too long, given up by SQLite
 *      push ▼  │
 *   a handler's transaction open: its own requests run at once; all others wait
 *
 * One commit for many requests is one wait for the disk. If one of them throws, all is undone and each is run by itself,
 * so that its error stays its own.
 */
import type { DatabaseSync } from 'node:sqlite'
import { MillpondError } from '../../../values/errors.ts'
import { safeText } from '../../../values/safe-error.ts'
import { IdleQueues } from '../../idle.ts'
import { toWire } from '../errors.ts'
import type { Context } from '../operations/context.ts'
import { OPERATIONS, READING, REPEATABLE } from '../operations/index.ts'
import { pushWithin } from '../operations/push.ts'
import { type QueueChanges, Queues } from '../queues.ts'
import type { Settings } from '../settings.ts'
import { query } from './query.ts'
import type { Answer, Inputs, Operation, Request, RequestOf } from './requests.ts'
import { Statements } from './statements.ts'
import { whileBusy } from './while-busy.ts'
import type { WriteAheadLog } from './write-ahead-log.ts'

/** A commit holds up every request that comes after it. */
const MAX_JOBS_PER_COMMIT = 5_000

type OperationRequest = RequestOf<Operation>

const isOperation = (request: Request): request is OperationRequest => Object.hasOwn(OPERATIONS, request.op)

/** In a handler's transaction. */
const isEnd = ({ op }: Request): boolean => op === 'complete' || op === 'rollback'

/** About how many jobs a request touches. */
function jobsIn({ op, input }: OperationRequest): number {
  if (op === 'push') return 'count' in input ? input.count : input.length
  if (op === 'complete') return 'count' in input.completions ? input.completions.count : input.completions.length
  return op === 'claim' ? input.limit : 1
}

const HANDLERS: { [O in Operation]: (context: Context, input: Inputs[O]) => unknown } = OPERATIONS
const READERS: { [O in Operation]?: (context: Context, input: Inputs[O]) => unknown } = READING

export interface Reports {
  /** Answers are ready to be posted. */
  answer(answers: Answer[]): void
  /** A commit was made. */
  committed(queues: QueueChanges[]): void
}

/** A handler's. It holds up every writer, extensions of leases among them, so its time is bounded as a whole. */
interface OpenTransaction {
  number: number
  timer: NodeJS.Timeout
}

export class GroupCommit {
  readonly #db: DatabaseSync
  readonly #settings: Settings
  readonly #log: Pick<WriteAheadLog, 'sync'> | null
  readonly #reports: Reports
  readonly #context: Omit<Context, 'now'>
  readonly #begin
  readonly #commit
  #waiting: Request[] = []
  #transaction: OpenTransaction | null = null
  /** Transactions that ended without the handler's doing, and why. */
  readonly #broken = new Map<number, string>()

  /** @param log null: commits wait for no disk */
  constructor(
    db: DatabaseSync,
    fenceFloor: number,
    settings: Settings,
    log: Pick<WriteAheadLog, 'sync'> | null,
    reports: Reports,
  ) {
    const statements = new Statements(db)
    this.#context = { statements, queues: new Queues(statements), idle: new IdleQueues(), fenceFloor }
    this.#db = db
    this.#settings = settings
    this.#log = log
    this.#reports = reports
    this.#begin = db.prepare('begin immediate')
    this.#commit = db.prepare('commit')
  }

  get statements(): Statements {
    return this.#context.statements
  }

  add(request: Request): void {
    this.#waiting.push(request)
  }

  /** Does all that can be done now. */
  run(): void {
    for (;;) {
      if (this.#transaction !== null) this.#runOpen(this.#transaction)
      const [head] = this.#waiting
      if (this.#transaction !== null || head === undefined) return
      if (head.transaction === undefined) this.#runGroup(this.#takeGroup())
      else {
        this.#waiting.shift()
        this.#enter(head, head.transaction)
      }
    }
  }

  /** Runs what came before, and rolls back what a handler left open. */
  finish(): void {
    this.run()
    while (this.#transaction !== null) {
      this.#breakOff(this.#transaction, 'the store was closed')
      this.run()
    }
  }

  #takeGroup(): OperationRequest[] {
    const group: OperationRequest[] = []
    let jobs = 0
    for (const request of this.#waiting) {
      if (request.transaction !== undefined || !isOperation(request) || jobs >= MAX_JOBS_PER_COMMIT) break
      group.push(request)
      jobs += jobsIn(request)
    }
    this.#waiting = this.#waiting.slice(group.length)
    return group
  }

  #runGroup(group: OperationRequest[]): void {
    const answers: Answer[] = []
    const isReading = group.every(({ op }) => READERS[op] !== undefined)
    const writing = isReading ? group.filter((request) => !this.#read(request, answers)) : group
    if (writing.length > 0) this.#commitAll(writing, answers)
    this.#reports.answer(answers)
  }

  /** False if the request has to write. */
  #read<O extends Operation>(request: RequestOf<O>, answers: Answer[]): boolean {
    const { seq } = request
    try {
      const context = this.#contextOf(request)
      const output = whileBusy(this.#settings.busyTimeout, () => READERS[request.op]?.(context, request.input))
      if (output === undefined) return false
      answers.push({ seq, output })
    } catch (error) {
      answers.push(this.#rejected(seq, error))
    }
    return true
  }

  #commitAll(group: readonly OperationRequest[], answers: Answer[]): void {
    let done: Answer[]
    let executing = false
    try {
      this.#beginNow()
      executing = true
      done = group.map((request) => ({ seq: request.seq, output: this.#execute(request) }))
      executing = false
      this.#commitNow()
    } catch (error) {
      this.#undo()
      if (executing && group.length > 1) for (const request of group) this.#commitAll([request], answers)
      else answers.push(...group.map(({ seq }) => this.#rejected(seq, error)))
      return
    }
    this.#answerSynced(group, done, answers)
  }

  /**
   * What a power cut may undo is answered at once, the rest when it is on the disk: so an idle worker begins with a job that was
   * just pushed while its pusher still waits for the disk.
   */
  #answerSynced(group: readonly OperationRequest[], done: readonly Answer[], answers: Answer[]): void {
    const isLasting = (_: Answer, at: number): boolean => !REPEATABLE.has(group[at]?.op ?? '')
    const lasting = done.filter(isLasting)
    if (this.#log === null || lasting.length === 0) {
      answers.push(...done)
      return
    }
    if (lasting.length < done.length) {
      this.#reports.answer([...answers.splice(0), ...done.filter((answer, at) => !isLasting(answer, at))])
    }
    try {
      this.#syncNow()
      answers.push(...lasting)
    } catch (error) {
      answers.push(...lasting.map(({ seq }) => this.#rejected(seq, error)))
    }
  }

  #contextOf({ now }: { now: number | null }): Context {
    return { ...this.#context, now: now ?? Date.now() }
  }

  #execute<O extends Operation>(request: RequestOf<O>): unknown {
    return HANDLERS[request.op](this.#contextOf(request), request.input)
  }

  #beginNow(): void {
    this.#context.queues.discard()
    whileBusy(this.#settings.busyTimeout, () => this.#begin.run())
  }

  #commitNow(): void {
    this.#context.queues.write()
    this.#commit.run()
    this.#reports.committed(this.#context.queues.take())
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

  #undo(): void {
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

  /** A request of a transaction that isn't open: begins it, or tells why it is over. */
  #enter(request: Request, number: number): void {
    const { seq } = request
    const why = this.#broken.get(number) ?? (request.op === 'complete' ? 'it is not open' : undefined)
    if (isEnd(request)) this.#broken.delete(number)
    if (request.op === 'rollback') {
      this.#reports.answer([{ seq, output: null }])
      return
    }
    try {
      if (why !== undefined)
        throw new MillpondError('TransactionMismatch', `the handler's transaction cannot go on: ${why}`)
      this.#broken.set(number, 'it could not begin')
      this.#beginNow()
      this.#broken.delete(number)
    } catch (error) {
      this.#reports.answer([this.#rejected(seq, error)])
      return
    }
    const { transactionTimeout } = this.#settings
    const transaction: OpenTransaction = {
      number,
      timer: setTimeout(() => {
        this.#breakOff(transaction, `it was open for ${transactionTimeout} ms and was rolled back, to let others write`)
        this.run()
      }, transactionTimeout),
    }
    this.#transaction = transaction
    this.#waiting.unshift(request)
  }

  /** Runs the open transaction's own requests, up to its end. */
  #runOpen(open: OpenTransaction): void {
    for (let at = 0; at < this.#waiting.length; ) {
      const request = this.#waiting[at]
      if (request?.transaction !== open.number) at++
      else {
        this.#waiting.splice(at, 1)
        this.#reports.answer([this.#runOwn(open, request)])
        if (this.#transaction !== open) return
      }
    }
  }

  #runOwn(open: OpenTransaction, request: Request): Answer {
    const { seq } = request
    if (isEnd(request)) this.#leave(open)
    try {
      if (request.op === 'query') {
        const { text, params } = request.input
        return { seq, output: query(this.#db, text, params) }
      }
      if (request.op === 'push') return { seq, output: pushWithin(this.#contextOf(request), request.input) }
      if (request.op !== 'complete') {
        this.#undo()
        return { seq, output: null }
      }
      const output = OPERATIONS.complete(this.#contextOf(request), request.input)
      if (output.length > 0) this.#undo()
      else {
        this.#commitNow()
        this.#syncNow()
      }
      return { seq, output }
    } catch (error) {
      if (this.#transaction !== open) this.#undo()
      else if (!this.#db.isTransaction) this.#breakOff(open, `SQLite rolled it back: ${safeText(error)}`)
      return this.#rejected(seq, error)
    }
  }

  #leave(open: OpenTransaction): void {
    clearTimeout(open.timer)
    this.#transaction = null
  }

  #breakOff(open: OpenTransaction, why: string): void {
    this.#broken.set(open.number, why)
    this.#leave(open)
    this.#undo()
  }
}
