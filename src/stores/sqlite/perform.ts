/** From a request to the engine's operation and back to what is posted. */
import type { Engine } from './engine.ts'
import { COMPLETION_FIELDS, JOB_FIELDS } from './flat.ts'
import type { Answer, JobRequest } from './protocol.ts'
import { find, list, stats } from './records.ts'
import { idleSweep, requeue, sweep } from './sweep.ts'

const time = (request: JobRequest): number => request.now ?? Date.now()

/** Inside a write transaction. */
export function performAll(engine: Engine, requests: readonly JobRequest[]): Answer[] {
  return requests.map((request) => ({ seq: request.seq, output: perform(engine, request) }))
}

function perform(engine: Engine, request: JobRequest): unknown {
  const now = time(request)
  switch (request.op) {
    case 'configure':
      engine.configure(request.input)
      return null
    case 'push':
      return engine.push(request.input, now)
    case 'claim':
      return engine.claim(request.input, now)
    case 'complete':
      return engine.complete(request.input.queue, request.input.packed, now)
    case 'fail':
      return engine.fail(request.input.queue, request.input.failures, now)
    case 'release':
      return engine.release(request.input.queue, request.input.flat)
    case 'extend':
      return engine.extend(request.input.queue, request.input.lease, request.input.extensions, now)
    case 'cancel':
      return engine.cancel(request.input, now)
    case 'sweep':
      return sweep(engine, request.input, now)
    case 'record':
      engine.record(request.input, now)
      return null
    case 'requeue':
      return requeue(engine, request.input, now)
    case 'find':
    case 'stats':
    case 'list':
      return read(engine, request)
  }
}

/**
 * The answer to a request that needs no write, so that it takes no lock and waits for nobody; undefined: it has to write.
 * Idle workers claim and sweep all the time: these only write where there is something to claim or to sweep.
 */
export function read(engine: Engine, request: JobRequest): unknown {
  const now = time(request)
  switch (request.op) {
    case 'find':
      return find(engine.statements, request.input)
    case 'list':
      return list(engine.statements, request.input)
    case 'stats':
      return stats(engine.statements, request.input, now)
    case 'claim':
      return engine.emptyClaim(request.input, now)
    case 'sweep':
      return idleSweep(engine, now) ?? undefined
    default:
      return undefined
  }
}

const READABLE: ReadonlySet<JobRequest['op']> = new Set(['find', 'list', 'stats', 'claim', 'sweep'])

/** Whether `read` may have an answer. */
export function isReadable({ op }: JobRequest): boolean {
  return READABLE.has(op)
}

const REPEATABLE: ReadonlySet<JobRequest['op']> = new Set(['claim', 'release', 'extend', 'sweep', 'record'])

/**
 * Whether a power cut may undo it: then every worker on the machine is gone, too, and the job is claimed, or swept, anew.
 * What the caller takes as done for good must be on the disk; this needs not, which saves an idle worker's claim the wait.
 */
export function isRepeatable({ op }: JobRequest): boolean {
  return REPEATABLE.has(op)
}

/** About how many jobs a request touches. */
export function weight(request: JobRequest): number {
  switch (request.op) {
    case 'push':
      return Array.isArray(request.input) ? request.input.length / JOB_FIELDS : request.input.count
    case 'complete':
      return Array.isArray(request.input.packed)
        ? request.input.packed.length / COMPLETION_FIELDS
        : request.input.packed.count
    case 'claim':
      return request.input.limit
    default:
      return 1
  }
}
