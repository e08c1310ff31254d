/**
 * `millpond/dashboard`: the dashboard as one handler from Request to Response, to mount at any path.
 *
 *   …/                 the page            …/events      the event stream, which all views live on
 *   …/page.js, …       its files           …/api/NAME    reads and actions: POST of JSON, so that nothing is in a URL
 */
import '../values/runtime/runtime.ts'
import { actionDone } from '../pond/actions.ts'
import { Millpond } from '../pond/millpond.ts'
import { MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import { checkOptions, isFunction, type Rules } from '../values/options/options.ts'
import { type OnError, reporter } from '../web/problem.ts'
import { tokenFault } from '../web/tokens.ts'
import { Callers, type DashboardToken, type RightsHook } from './callers.ts'
import { Handler } from './handler.ts'
import { Redaction, redactedPaths } from './redact.ts'
import { isRights } from './rights.ts'

export type { ActionEvent } from '../values/jobs/events.ts'
export type { DashboardToken, RightsHook, RightsVerdict } from './callers.ts'
export type { Rights, Scope } from './rights.ts'

export interface DashboardOptions {
  /**
   * What a request may do, decided by the host application: `(request) => isAdmin(request) && { operator: true }`.
   * Anything falsy is a 403; a Response is sent as it is. `'local'`: programs and people of this machine may do
   * everything, and nobody else anything. It needs `toNode` or `toFastify`: other servers do not tell who the client is,
   * and everybody gets a 403. Unset: `tokens` decide. One of both is needed.
   */
  rights?: RightsHook | 'local' | undefined
  /** Tokens, each with its rights. A browser shows a form for one. None unless set. */
  tokens?: readonly DashboardToken[] | undefined
  /**
   * Paths in payloads that are never shown, such as `data.card.number` or `**.password`. `*` is any name, `**` any
   * number of names. Payloads then cannot be edited, nor searched for a text. None unless set.
   */
  redact?: readonly string[] | undefined
  /** Called after each action: who did what. The event `action` of the pond tells the same. Unset: nothing is called. */
  onAction?: ((event: ActionEvent) => void) | undefined
  /** Called with errors of the service; the page gets a 500 or 503 without details. Unset: the first one is a process warning. */
  onError?: OnError | undefined
}

const isTexts = (value: unknown) =>
  (Array.isArray(value) && value.every((one) => typeof one === 'string')) || 'an array of texts'
const RULES: Rules<DashboardOptions> = {
  rights: (value) => value === 'local' || typeof value === 'function' || "a function, or 'local'",
  tokens: areTokens,
  redact: isTexts,
  onAction: isFunction,
  onError: isFunction,
}

/**
 * The dashboard of one pond, or of several by name. It never rejects: every error is a problem document (RFC 9457).
 * @throws InvalidOption
 */
export function dashboard(
  ponds: Millpond | Readonly<Record<string, Millpond>>,
  options: DashboardOptions,
): (request: Request) => Promise<Response> {
  const given = checkOptions(options, RULES, 'dashboard')
  const { rights, tokens = [], redact = [], onAction } = given
  if (rights === undefined && tokens.length === 0) {
    const example =
      "rights: (request) => isAdmin(request) && { operator: true, payloads: true }, or tokens, or rights: 'local'"
    throw new MillpondError('InvalidOption', `dashboard: say who may use it: ${example}`)
  }
  const named = pondsByName(ponds)
  const report = reporter(given.onError)
  const acted = async (event: ActionEvent, pond: Millpond) => {
    await actionDone(pond, event)
    try {
      onAction?.(event)
    } catch (error) {
      report(error, undefined)
    }
  }
  const stopping = AbortSignal.any([...named.values()].map((pond) => pond.stopping))
  const handler = new Handler({
    ...{ ponds: named, acted, report, stopping, maxBody: 2 * MAX_PAYLOAD },
    callers: new Callers(rights, tokens, stopping),
    redaction: new Redaction(redactedPaths(redact)),
  })
  return (request) => handler.handle(request)
}

/** @throws InvalidOption */
function pondsByName(given: Millpond | Readonly<Record<string, Millpond>>): Map<string, Millpond> {
  if (given instanceof Millpond) return new Map([['main', given]])
  const entries = typeof given === 'object' && given !== null ? Object.entries(given) : []
  if (entries.length > 0 && entries.every(([name, pond]) => name !== '' && pond instanceof Millpond))
    return new Map(entries)
  throw new MillpondError('InvalidOption', 'dashboard takes a pond, or ponds by name, such as { main: pond }')
}

/** @throws InvalidOption. A token is not shown in the error. */
function areTokens(value: unknown): true {
  const refuse = (fault: string) => new MillpondError('InvalidOption', `dashboard: ${fault}`)
  if (!Array.isArray(value)) throw refuse('tokens must be an array of { token, operator, payloads }')
  for (const one of value as unknown[]) {
    if (typeof one !== 'object' || one === null || !('token' in one) || typeof one.token !== 'string') {
      throw refuse('each of tokens is an object such as { token, operator: true }')
    }
    const { token, ...rights } = one
    const fault = tokenFault(token)
    if (fault !== undefined) throw refuse(fault)
    if (!isRights(rights))
      throw refuse('a token has who, viewer, operator and payloads, each of them as rights have it')
  }
  return true
}
