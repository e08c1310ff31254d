/** The query and body of a request, as its route takes them. */

import { accepts, isAcceptable, isMessagePack } from '../values/encoding/accept.ts'
import { readBody } from '../web/body.ts'
import type { BodyLimits } from '../web/body-limits.ts'
import { contentType } from '../web/headers.ts'
import { Refusal, unsupportedType } from '../web/problem.ts'
import { check, type Issue, type Properties, quoted, type Schema, unknownName } from './json-schema.ts'
import type { Route } from './route.ts'

const MEDIA_TYPES = 'application/json, application/msgpack'
/** Headers that a form of a web page cannot send. A request without a body must have one of them, even empty, or a Content-Type. */
const NOT_OF_A_FORM = ['x-requested-with', 'prefer']

/** @throws Refusal: 400, 406, 408, 413, 415, 422 */
export async function inputOf(
  request: Request,
  query: URLSearchParams,
  route: Route,
  limits: BodyLimits,
): Promise<{ query: Record<string, unknown>; body: unknown }> {
  const { events = false, media } = route.answers[200] ?? {}
  if (media === undefined ? !isAcceptable(request, events) : !accepts(request, media)) {
    const offered = media ?? (events ? `${MEDIA_TYPES}, text/event-stream` : MEDIA_TYPES)
    throw new Refusal(406, `Nothing that Accept names is on offer here; on offer are ${offered}.`)
  }
  return { query: queryOf(query, route), body: await bodyOf(request, route, limits) }
}

function queryOf(given: URLSearchParams, { query: optional, requiredQuery: required = {} }: Route) {
  const known: Properties = { ...required, ...optional }
  const query: Record<string, unknown> = {}
  const wrong = (message: string) => invalid('The query', [{ path: '', message }])
  for (const [name, text] of given) {
    const parameter = Object.hasOwn(known, name) ? known[name] : undefined
    if (parameter === undefined) throw wrong(`has an unknown parameter ${unknownName(name, known)}`)
    if (Object.hasOwn(query, name)) throw wrong(`has ${quoted(name)} twice`)
    // Other text stays text, and is refused for it.
    const value = parameter.type === 'integer' && /^-?\d{1,15}$/.test(text) ? Number(text) : text
    query[name] = checked(value, parameter, `The parameter ${quoted(name)}`)
  }
  for (const [name, { enum: values }] of Object.entries(required)) {
    const choice = values === undefined ? '' : `; it is one of ${values.join(', ')}`
    if (!Object.hasOwn(query, name)) throw wrong(`lacks the parameter ${quoted(name)}${choice}`)
  }
  return query
}

async function bodyOf(request: Request, { body, bodyOptional = false }: Route, limits: BodyLimits): Promise<unknown> {
  if (body === undefined) return undefined
  const sent = hasBody(request, bodyOptional) ? await readBody(request, limits, bodyOptional) : undefined
  return checked(sent === undefined && bodyOptional ? {} : sent, body, 'The body')
}

/**
 * Whether there is a body to read. Only JSON and MessagePack are taken: a page of another origin can send forms and plain text without
 * CORS, but not these.
 * @throws Refusal: 415
 */
function hasBody({ headers }: Request, optional: boolean): boolean {
  const type = contentType(headers)
  if (type === undefined) {
    // Without a type nothing is read, but an announced body must not be ignored.
    const announced = headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) !== 0
    if (!optional || announced) throw unsupportedType('The request has no Content-Type', MEDIA_TYPES)
    if (NOT_OF_A_FORM.some((name) => headers.has(name))) return false
    throw unsupportedType('The request has neither a Content-Type nor X-Requested-With', MEDIA_TYPES)
  }
  const media = type?.media ?? ''
  if (media === 'application/json' || media.endsWith('+json') || isMessagePack(media)) return true
  throw unsupportedType('This Content-Type is not taken', MEDIA_TYPES)
}

/** @throws Refusal */
function checked(value: unknown, schema: Schema, what: string): unknown {
  const issues = check(value, schema)
  if (issues.length > 0) throw invalid(what, issues)
  return value
}

function invalid(what: string, issues: readonly Issue[]): Refusal {
  const [first] = issues
  const where = first === undefined || first.path === '' ? what : `${what}: ${first.path}`
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  const detail = `${where} ${first?.message ?? 'is not valid'}${more}.`
  return new Refusal(422, detail, { code: 'InvalidOption', members: { issues } })
}
