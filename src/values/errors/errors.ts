/**
 * One error class for everything. `contract/errors.json` is the list of codes with their meaning and what to do;
 * a test holds this file, that list and the documentation against each other.
 */

import { safeError, safeText } from './safe-error.ts'

/** Codes after which the same call may succeed later, unchanged. */
const RETRYABLE = [
  'QueueFull',
  'TooManyQueues',
  'LeaseLost',
  'HandlerFailed',
  'HandlerCrashed',
  'HandlerNotLoaded',
  'MemoryExceeded',
  'CpuExceeded',
  'TimedOut',
  'ResultTimeout',
  'StoreUnavailable',
  'StoreBusy',
  'StoreFull',
  'StoreFailed',
] as const

const FINAL = [
  'InvalidOption',
  'InvalidName',
  'InvalidPath',
  'UnknownScheme',
  'DriverMissing',
  'NotSupported',
  'PayloadNotEncodable',
  'PayloadNotDecodable',
  'PayloadSealed',
  'PayloadTooLarge',
  'SchemaMismatch',
  'Closed',
  'StaleAttempt',
  'GaveUp',
  'StepMismatch',
  'JobParked',
  'StepsTooLarge',
  'SignalTimeout',
  'JobEnded',
  'JobFailed',
  'JobCancelled',
  'JobUnknown',
  'ParentUnknown',
  'KeyHeld',
  'ParentFailed',
  'GraphCycle',
  'AcrossShards',
  'ShardMismatch',
  'QueueUnknown',
  'NoRest',
  'TransactionMismatch',
  'BatchMismatch',
  'BatchRecursion',
  'SecondLibrary',
  'StoreRefused',
  'StoreCorrupt',
  'StoreVersion',
] as const

export const ERROR_CODES = [...RETRYABLE, ...FINAL]
export type ErrorCode = (typeof ERROR_CODES)[number]

const retryable: ReadonlySet<string> = new Set(RETRYABLE)

/** What further facts an error may carry, by name. */
export interface ErrorDetails {
  /**
   * What the error was made from. The error of a driver or of the platform is kept as a copy without secrets and
   * payloads (`safeError`).
   */
  cause?: unknown
  /** The same, for what a function of the application's threw: kept as it is, since it is the application's own. */
  thrown?: unknown
  /** SchemaMismatch: each fault with the path to it. */
  issues?: readonly { message: string; path?: string }[]
  /** The job concerned. */
  id?: string
  /** The queue concerned. */
  queue?: string
  /** `pushMany`: how many jobs, counted from the first, the store has. The rest was not stored. */
  pushed?: number
}

export class MillpondError extends Error {
  override readonly name = 'MillpondError'
  readonly code: ErrorCode
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
  declare readonly issues?: readonly { message: string; path?: string }[]
  declare readonly id?: string
  declare readonly queue?: string
  declare readonly pushed?: number

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, causeIn(details))
    this.code = code
    this.retryable = retryable.has(code)
    if (details.issues !== undefined) this.issues = details.issues
    if (details.id !== undefined) this.id = details.id
    if (details.queue !== undefined) this.queue = details.queue
    if (details.pushed !== undefined) this.pushed = details.pushed
  }
}

function causeIn({ cause, thrown }: ErrorDetails): ErrorOptions | undefined {
  if (thrown !== undefined) return { cause: thrown }
  if (cause === undefined) return undefined
  return { cause: cause instanceof MillpondError ? cause : safeError(cause) }
}

/** Whether something thrown is a MillpondError, and, where a code is given, one with that code. */
export function isMillpondError(error: unknown, code?: ErrorCode): error is MillpondError {
  return error instanceof MillpondError && (code === undefined || error.code === code)
}

/** What a store threw as an error of ours: one of another kind becomes `StoreFailed`. @param what names the operation in the message */
export function storeError(error: unknown, what: string): MillpondError {
  return error instanceof MillpondError
    ? error
    : new MillpondError('StoreFailed', `${what} failed: ${safeText(error)}`, { cause: error })
}

/** Whether a stored value was refused when it was decoded. */
export function isNotDecodable(error: unknown): error is MillpondError {
  return isMillpondError(error, 'PayloadNotDecodable') || isMillpondError(error, 'PayloadSealed')
}
