/** Entries of a journal as a worker writes and reads them: contract/steps.md, "Names". */

import { decode } from '../../values/encoding/encoding.ts'
import { ERROR_CODES, type ErrorCode, MillpondError } from '../../values/errors/errors.ts'
import { errorFrom, jobError } from '../../values/jobs/job.ts'
import type { Encoded, JobError, NewEntry } from '../../values/jobs/records.ts'

export type StepKind = 'step' | 'sleep' | 'wait' | 'run'

/** What an entry says beside its body. */
export interface EntryMeta {
  kind: StepKind
  /** Which attempt wrote it. */
  attempt: number
  /** When, in milliseconds since 1970. */
  at: number
  /** Of a step: for how long it ran, in milliseconds. */
  took?: number
  /** Of a sleep, a wait or a step that is to be tried again: until when; null: without an end. */
  until?: number | null
  /** Of a wait that has ended: the name of the signal's entry. */
  signal?: string
  /** Of a child: its id. */
  child?: string
  /** The body is an error. */
  failed?: boolean
}

const KINDS: ReadonlySet<unknown> = new Set<StepKind>(['step', 'sleep', 'wait', 'run'])

export function entry(name: string, meta: EntryMeta, body: Encoded | null = null): NewEntry {
  return { name, meta: JSON.stringify(meta), body }
}

export const errorBody = (error: JobError): Encoded => ({ encoding: 'json', body: JSON.stringify(error) })

/** The error of a step as it is kept: without its stack, which may be long. */
export function keptError(thrown: unknown): JobError {
  const { code, name, message } = jobError(thrown)
  return { code, name, message: message.toWellFormed() }
}

/** undefined: another program has written something else. */
export function metaOf({ meta }: Pick<NewEntry, 'meta'>): EntryMeta | undefined {
  try {
    const parsed: unknown = JSON.parse(meta)
    if (typeof parsed === 'object' && parsed !== null && 'kind' in parsed && KINDS.has(parsed.kind)) {
      // The kind was checked; the other members are taken as the contract has them, and only compared.
      return parsed as EntryMeta
    }
  } catch {
    // As below.
  }
  return undefined
}

/** undefined: there is none. @throws PayloadNotDecodable */
export const bodyOf = ({ body }: Pick<NewEntry, 'body'>): unknown =>
  body === null ? undefined : decode(body, 'the result of a step')

/** What a step came to. @throws the error with which it failed */
export function outcomeOf(given: Pick<NewEntry, 'meta' | 'body'>): unknown {
  const value = bodyOf(given)
  if (metaOf(given)?.failed !== true) return value
  const { code = 'HandlerFailed', name = 'Error', message = '' } = (value ?? {}) as Partial<JobError>
  if (name === 'MillpondError' && isErrorCode(code)) throw new MillpondError(code, String(message))
  throw errorFrom({ code: String(code), name: String(name), message: String(message) })
}

const isErrorCode = (code: string): code is ErrorCode => (ERROR_CODES as readonly string[]).includes(code)
