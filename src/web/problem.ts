/** Problem documents (RFC 9457), and how an error becomes one. Internal details of the server stay out of them. */
import { STATUS_CODES } from 'node:http'
import { type ErrorCode, isMillpondError } from '../values/errors/errors.ts'
import { errorSummary } from '../values/errors/safe-error.ts'
import { jsonText } from './answer.ts'

export interface Problem {
  /** The HTTP status. */
  status: number
  /** What went wrong with this request, for people. */
  detail: string
  /** Of `contract/errors.json`; also makes the `type`. Unset: the type is `about:blank`. */
  code?: ErrorCode
  /** Further headers of the answer; none unless set. */
  headers?: Record<string, string>
  /** Further members of the document; none unless set. */
  members?: Record<string, unknown>
}

/** By status. Node has the names of an older HTTP for two of them (RFC 9110, section 15.5). */
const TITLES: Readonly<Record<number, string | undefined>> = {
  ...STATUS_CODES,
  413: 'Content Too Large',
  422: 'Unprocessable Content',
}

/** An answer with a problem document. Its `type` is `urn:millpond:error:CODE`, or `about:blank` without a code. */
export function problem({ status, detail, code, headers, members }: Problem): Response {
  const document = {
    type: code === undefined ? 'about:blank' : `urn:millpond:error:${code}`,
    title: TITLES[status] ?? 'Error',
    status,
    detail,
    ...(code !== undefined && { code }),
    ...members,
  }
  const bytes = Buffer.from(jsonText(document))
  const always = { 'content-type': 'application/problem+json', 'content-length': String(bytes.length) }
  return new Response(bytes, { status, headers: { ...always, 'cache-control': 'no-store', ...headers } })
}

/** Thrown to refuse a request; becomes its problem document. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: Problem

  constructor(status: number, detail: string, more: Omit<Problem, 'status' | 'detail'> = {}) {
    super(detail)
    this.problem = { status, detail, ...more }
  }
}

/** @throws Refusal: 404, JobUnknown */
export function refuseUnknownJob(): never {
  throw new Refusal(404, 'There is no such job, or it is not kept any more.', { code: 'JobUnknown' })
}

/** A 415. @param supported media types, as `Accept-Post` lists them */
export function unsupportedType(what: string, supported: string, headers: Record<string, string> = {}): Refusal {
  const detail = `${what}; send one of ${supported}, in UTF-8 and uncompressed.`
  return new Refusal(415, detail, { headers: { 'accept-post': supported, ...headers } })
}

/**
 * Called with errors of the service that the client is not told. `request`: undefined if the error belongs to no
 * request, or none could be parsed.
 */
export type OnError = (error: unknown, request: Request | undefined) => void

/** @param onError unset: the first error is a process warning with its class and place; not its message, which may hold a payload */
export function reporter(onError: OnError | undefined): OnError {
  let warned = false
  const warn = (error: unknown) => {
    const text = `${errorSummary(error)} (further ones are not shown; give onError to see all)`
    process.emitWarning(text, { type: 'MillpondWarning' })
  }
  return (error, request) => {
    try {
      if (onError !== undefined) {
        onError(error, request)
        return
      }
    } catch (broken) {
      // A broken hook must neither change the answer nor end the process.
      warn(broken)
    }
    if (!warned) warn(error)
    warned = true
  }
}

/** Most issues of a schema that a document lists. */
const MAX_ISSUES = 100

/**
 * Errors that the client can correct, with their status. PayloadNotDecodable is missing: it is about stored data; an
 * unreadable body is a Refusal.
 */
const CLIENT_ERRORS: Partial<Record<ErrorCode, number>> = {
  InvalidOption: 400,
  InvalidName: 400,
  JobUnknown: 404,
  QueueUnknown: 404,
  JobEnded: 409,
  StepsTooLarge: 409,
  ParentUnknown: 409,
  KeyHeld: 409,
  GraphCycle: 400,
  AcrossShards: 409,
  PayloadTooLarge: 413,
  PayloadNotEncodable: 422,
  StoreRefused: 422,
  SchemaMismatch: 422,
  NotSupported: 501,
  // Of a schedule that is to be run now.
  PayloadSealed: 501,
}

/** Errors that pass, with the text for the client. Their own messages may name paths and hosts. */
const PASSING_ERRORS: Partial<Record<ErrorCode, string>> = {
  QueueFull: 'The queue is full. Nothing was stored; send the request again later.',
  TooManyQueues: 'There are too many queues for another one. Nothing was stored.',
  Closed: 'The service is shutting down. Send the request again later.',
  StoreUnavailable: 'The store cannot be reached. Send the request again later.',
  StoreBusy: 'The store is busy. Nothing was stored; send the request again later.',
  StoreFull: 'The store has no room left. Nothing was stored; send the request again later.',
  StoreFailed: 'The store could not do it. Send the request again later.',
}
const REFUSED = 'The store refuses these data: a trigger, a constraint or a limit of it. Nothing was stored of them.'
const UNREPORTED: readonly string[] = ['QueueFull', 'TooManyQueues', 'Closed']

/**
 * What the client is told of an error, and whether it is one of the service, which `onError` is called with.
 * @param retryAfter seconds, for errors that pass
 */
export function problemOf(error: unknown, retryAfter: number): { problem: Problem; isReported: boolean } {
  if (error instanceof Refusal) return { problem: error.problem, isReported: false }
  if (isMillpondError(error)) {
    const { code, message, issues } = error
    const status = CLIENT_ERRORS[code]
    if (status !== undefined) {
      const members = issues === undefined ? {} : { members: { issues: issues.slice(0, MAX_ISSUES) } }
      // The store's own words may name tables.
      const isOfStore = code === 'StoreRefused'
      return { problem: { status, code, detail: isOfStore ? REFUSED : message, ...members }, isReported: isOfStore }
    }
    const detail = PASSING_ERRORS[code]
    if (detail !== undefined) {
      const passing = { status: 503, code, detail, headers: retryAfterHeader(retryAfter) }
      return { problem: passing, isReported: !UNREPORTED.includes(code) }
    }
  }
  return { problem: { status: 500, detail: 'The service could not handle the request.' }, isReported: true }
}

/** The answer to an error, which `report` is called with if it is one of the service. @param retryAfter as of `problemOf` */
export function errorAnswer(error: unknown, request: Request, retryAfter: number, report: OnError): Response {
  const { problem: document, isReported } = problemOf(error, retryAfter)
  if (isReported) report(error, request)
  return problem(document)
}

/** `Retry-After`, spread over one to two times the seconds, so that clients refused together do not come back together. */
export function retryAfterHeader(seconds: number): { 'retry-after': string } {
  return { 'retry-after': String(Math.max(1, Math.ceil(seconds * (1 + Math.random())))) }
}
