/** Problem documents (RFC 9457), and how an error becomes one. Internal details of the server stay out of them. */
import { STATUS_CODES } from 'node:http'
import { type ErrorCode, isMillpondError } from '../values/errors.ts'
import type { OnError } from './report.ts'

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
    ...(code === undefined ? {} : { code }),
    ...members,
  }
  const bytes = Buffer.from(JSON.stringify(document))
  const always = { 'content-type': 'application/problem+json', 'content-length': String(bytes.length) }
  return new Response(bytes, { status, headers: { ...always, 'cache-control': 'no-store', ...headers } })
}

/** Thrown to refuse a request; becomes its problem document. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.problem = problem
  }
}

/** Most issues of a schema that a document lists. */
const MAX_ISSUES = 100

/** Errors that the client can correct, with their status. PayloadNotDecodable is missing: it is about stored data; an unreadable body is a Refusal. */
const CLIENT_ERRORS: Partial<Record<ErrorCode, number>> = {
  InvalidOption: 400,
  InvalidName: 400,
  JobUnknown: 404,
  PayloadTooLarge: 413,
  PayloadNotEncodable: 422,
  SchemaMismatch: 422,
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

export interface Trouble {
  problem: Problem
  /** Whether `onError` is called with it. */
  ours: boolean
}

/** @param retryAfter seconds, for what passes; up to twice as many are told, so that those refused together do not come back together */
export function troubleOf(error: unknown, retryAfter: number): Trouble {
  if (error instanceof Refusal) return { problem: error.problem, ours: false }
  if (isMillpondError(error)) {
    const { code, message, issues } = error
    const status = CLIENT_ERRORS[code]
    if (status !== undefined) {
      const members = issues === undefined ? undefined : { issues: issues.slice(0, MAX_ISSUES) }
      return { problem: { status, code, detail: message, ...(members ? { members } : {}) }, ours: false }
    }
    const detail = PASSING_ERRORS[code]
    if (detail !== undefined) {
      const passing = { status: 503, code, detail, headers: later(retryAfter) }
      return { problem: passing, ours: code !== 'QueueFull' && code !== 'TooManyQueues' && code !== 'Closed' }
    }
  }
  return { problem: { status: 500, detail: 'The service could not handle the request.' }, ours: true }
}

/** The answer to an error, which `report` hears of where it is the service's own. @param retryAfter as of `troubleOf` */
export function problemOf(error: unknown, request: Request, retryAfter: number, report: OnError): Response {
  const { problem: told, ours } = troubleOf(error, retryAfter)
  if (ours) report(error, request)
  return problem(told)
}

/** `Retry-After`, spread over one to two times the seconds. */
export function later(seconds: number): { 'retry-after': string } {
  return { 'retry-after': String(Math.max(1, Math.ceil(seconds * (1 + Math.random())))) }
}
