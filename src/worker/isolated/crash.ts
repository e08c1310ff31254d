/** Why a process of a handler has ended. */
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { MillpondError } from '../../values/errors/errors.ts'
import { safeText } from '../../values/errors/safe-error.ts'
import type { Limits } from './messages.ts'

/** Characters of stderr that are looked at: what V8 says when it gives up is shorter. */
const LONGEST_END = 4000
const OUT_OF_MEMORY =
  /FATAL ERROR.*(?:out of memory|Allocation failed)|Fatal (?:JavaScript|process) out of memory|invalid array length Allocation failed/i
const MIB = 1024 ** 2

/** Hands on what the process writes to stderr, and reads there why it ended. */
export class ProcessErrors {
  readonly #token: string
  #end = ''
  /** What the watchdog has said. */
  verdict: 'memory' | 'cpu' | undefined

  constructor(stderr: Readable | null, token: string) {
    this.#token = token
    stderr?.setEncoding('utf8').on('data', (text: string) => this.#take(text))
  }

  /** V8 has ended the process, since its heap could not grow any more. */
  get isOutOfMemory(): boolean {
    return OUT_OF_MEMORY.test(this.#end)
  }

  #take(text: string): void {
    const rest = text.replace(new RegExp(`\\n${this.#token} (\\w+)\\n`), (_, why: string) => {
      if (why === 'memory' || why === 'cpu') this.verdict = why
      return ''
    })
    this.#end = (this.#end + rest).slice(-LONGEST_END)
    process.stderr.write(rest)
  }
}

/** @param failure why it could not even be started */
export function crash(
  { memory, cpu }: Limits,
  { verdict, isOutOfMemory }: ProcessErrors,
  { exitCode, signalCode }: ChildProcess,
  failure?: unknown,
): MillpondError {
  if (failure !== undefined) {
    const message = `the process of the handler could not be started: ${safeText(failure)}`
    return new MillpondError('HandlerCrashed', message, { cause: failure })
  }
  if (verdict === 'cpu') {
    return new MillpondError(
      'CpuExceeded',
      `the handler took more than ${cpu} ms of CPU time, the limit of isolate.cpu`,
    )
  }
  if (verdict === 'memory' || isOutOfMemory) {
    const limit = memory === null ? 'V8 allows' : `${Math.round(memory / MIB)} MB, the limit of isolate.memory`
    return new MillpondError('MemoryExceeded', `the process of the handler took more memory than ${limit}`)
  }
  const how = signalCode === null ? `with exit code ${exitCode}` : `by ${signalCode}`
  const message = `the process of the handler ended ${how} before the handler had answered`
  return new MillpondError('HandlerCrashed', message)
}
