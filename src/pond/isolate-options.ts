/** The options of a handler that runs in processes of its own. */
import { availableParallelism } from 'node:os'
import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { lacking } from '../values/operations/capabilities.ts'
import { checkFunction, checkOptions, isDuration, type Rules } from '../values/options/options.ts'
import { bytesOf, type Size } from '../values/options/sizes.ts'
import { hasTag } from '../values/runtime/realms.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import type { BatchHandler } from '../worker/batch-context.ts'
import { assertCanIsolate } from '../worker/isolated/command.ts'
import { type Isolated, isolated } from '../worker/isolated/index.ts'
import type { Handler } from '../worker/single-runner.ts'

/** The limits of each process of a handler. */
export interface IsolateOptions {
  /**
   * Most memory that the process may take in all, the runtime's own 70 MB or more included; 96 MB to 1 TB, no limit unless set. The job
   * that outgrows it fails with `MemoryExceeded`.
   */
  memory?: Size | undefined
  /**
   * Most CPU time of a call of the handler, of all threads together; 10 ms to 24 days, no limit unless set. The job that outgrows it fails
   * with `CpuExceeded`. Waiting takes no CPU time: a job's `timeout` bounds that.
   */
  cpu?: Duration | undefined
}

const LEAST_MEMORY = 96 * 1024 ** 2
const MOST_MEMORY = 1024 ** 4
const MOST_PROCESSES = 1000

const memoryOf = (value: unknown): number => bytesOf(value, 'isolate.memory', LEAST_MEMORY, MOST_MEMORY)
const RULES: Rules<IsolateOptions> = {
  memory: (value) => memoryOf(value) > 0,
  cpu: (value) => isDuration(10)(value, 'isolate.cpu'),
}

export const isIsolate = (value: unknown): boolean => checkOptions(value as IsolateOptions, RULES, 'isolate') !== null

interface Given {
  isolate?: IsolateOptions | undefined
  concurrency?: number | undefined
  transaction?: boolean | undefined
  replica?: unknown
  replicaTimeout?: Duration | undefined
}

/** How many processes an isolated handler has. @throws NotSupported, InvalidOption */
export function processesOf(where: string, { concurrency, transaction, replica, replicaTimeout }: Given): number {
  const used = Object.entries({ transaction: transaction || undefined, replica, replicaTimeout })
  for (const [option, value] of used) {
    if (value === undefined) continue
    const message = `${where}: ${option} does not go with isolate; use a client of your own in the module of the handler`
    throw new MillpondError('NotSupported', message)
  }
  assertCanIsolate(`${where}: isolate`)
  const processes = concurrency ?? Math.min(availableParallelism(), MOST_PROCESSES)
  if (processes <= MOST_PROCESSES) return processes
  const message = `${where}: concurrency must be at most ${MOST_PROCESSES} with isolate, a process each; got ${processes}`
  throw new MillpondError('InvalidOption', message)
}

type AnyHandler = Handler | BatchHandler

interface Settings {
  concurrency: number
  batch: object | undefined
  maxPayload: number
}

/**
 * What runs the jobs: the function that `work` was given, or one that hands them to the module of this URL.
 * @throws InvalidOption
 */
export function handlerOf(
  where: string,
  given: unknown,
  isolate: IsolateOptions | undefined,
  { concurrency, batch, maxPayload }: Settings,
  store: Store,
): { handler: AnyHandler; isolated?: Isolated } {
  if (isolate === undefined && !hasTag(given, 'URL')) {
    checkFunction(given, 'work takes a function as handler, or the URL of a module')
    // The caller has said what it takes.
    return { handler: given as AnyHandler }
  }
  const module = moduleOf(where, given, isolate)
  const { memory, cpu } = isolate ?? {}
  const limits = {
    memory: memory === undefined ? null : memoryOf(memory),
    cpu: cpu === undefined ? null : milliseconds(cpu, 'isolate.cpu'),
  }
  const lacksRates = store.capabilities.rates ? null : lacking(store, 'rates', 'ctx.rateLimited').message
  const terms = { module, limits, batch: batch !== undefined, maxPayload, lacksRates }
  const pool = isolated(terms, concurrency)
  return { handler: pool.handler, isolated: pool }
}

/** @returns the module's URL @throws InvalidOption */
function moduleOf(where: string, given: unknown, isolate: IsolateOptions | undefined): string {
  const example = `as in work(new URL('./report.ts', import.meta.url), { isolate: { memory: '256MB' } })`
  const url = hasTag(given, 'URL') ? String(given) : ''
  if (isolate === undefined || url === '') {
    const message = `${where}: the URL of a module and the option isolate go together, ${example}`
    throw new MillpondError('InvalidOption', message)
  }
  if (url.startsWith('file:')) return url
  const scheme = /^[a-z][\w+.-]{0,20}:/i.exec(url)?.[0] ?? ''
  throw new MillpondError('InvalidOption', `${where}: the module must be a file: URL, ${example}; got ${scheme}`)
}
