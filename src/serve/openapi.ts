/** The OpenAPI document, made of the table of routes. */

import { defined } from '../values/options/options.ts'
import { version } from '../values/runtime/version.ts'
import { id, problem, queueName } from './api-schemas.ts'
import type { Properties, Schema } from './json-schema.ts'
import type { Answer, Route } from './route.ts'
import { scheduleName } from './schedule-schemas.ts'

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request was not understood, or something in it is not valid.',
  401: 'The token is missing or wrong.',
  403: 'The request comes from a page of another origin, or for another host.',
  404: 'There is no such job or queue.',
  406: 'Nothing that Accept names is on offer.',
  408: 'The body did not come in time.',
  409: 'The job, or the claim, is not in a state for this; or a job to wait for is not known.',
  413: 'The body or the payload is over the limit.',
  415: 'The body is neither JSON nor MessagePack.',
  422: 'The query or the body is not of the shape that is asked for, or an Idempotency-Key was used with another payload.',
  501: 'The store cannot do this (`NotSupported`), or the service lacks the key of sealed data (`PayloadSealed`).',
  503: 'Come back later: the queue is full, the store is away, or the service is shutting down.',
}

/** By status: the headers of all problems with it. */
const REFUSAL_HEADERS: Readonly<Record<number, Readonly<Record<string, string>> | undefined>> = {
  401: { 'WWW-Authenticate': '`Bearer`.' },
  415: { 'Accept-Post': 'The types that are taken.' },
  503: { 'Retry-After': 'Seconds.' },
}

const PARAMS: Properties = { queue: queueName, id, name: scheduleName }

/** @param routes by their tag */
export function openApi(routes: Readonly<Record<string, readonly Route[]>>, withToken: boolean): object {
  const components = new Map<string, unknown>()
  const paths: Record<string, Record<string, unknown>> = {}
  for (const [tag, tagged] of Object.entries(routes)) {
    for (const route of tagged) {
      const own = { tags: [tag], ...operation(route, withToken, components) }
      paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: own }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millpond',
      version: version(),
      description: 'A work queue over HTTP. Bodies and answers are JSON or MessagePack, by Content-Type and Accept.',
    },
    paths,
    components: {
      schemas: Object.fromEntries(components),
      ...defined({ securitySchemes: withToken ? { token: { type: 'http', scheme: 'bearer' } } : undefined }),
    },
  }
}

function operation(route: Route, withToken: boolean, components: Map<string, unknown>): object {
  const { summary, description, body, bodyOptional, answers, open, problems = [503] } = route
  const { query, requiredQuery, headers, requiredHeaders } = route
  const schema = (given: Schema) => referred(given, components)
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const parameters = [
    ...names.map((name) => parameter('path', name, PARAMS[name] ?? {}, true)),
    ...parametersOf('query', requiredQuery, true),
    ...parametersOf('query', query, false),
    ...parametersOf('header', requiredHeaders, true),
    ...parametersOf('header', headers, false),
  ]
  // For any route: path and query, the token, host and origin, Accept. Then those of a body.
  const general = [400, ...(withToken && !open ? [401] : []), 403, 406, 422, ...(body ? [408, 413, 415] : [])]
  const refusals = [...new Set([...general, ...problems])].sort((a, b) => a - b)
  return {
    operationId: route.id,
    summary,
    ...defined({
      description,
      parameters: parameters.length === 0 ? undefined : parameters,
      requestBody: body && { required: !bodyOptional, content: contentOf(schema(body)) },
      security: withToken ? (open ? [] : [{ token: [] }]) : undefined,
    }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, given]) => [status, response(given, schema)])),
      ...Object.fromEntries(refusals.map((status) => [status, refusal(status, schema)])),
    },
  }
}

function parametersOf(location: 'query' | 'header', given: Properties = {}, required: boolean): object[] {
  return Object.entries(given).map(([name, schema]) => parameter(location, name, schema, required))
}

function parameter(location: string, name: string, { description, ...schema }: Schema, required: boolean): object {
  return { name, in: location, required, description, schema }
}

function response({ description, schema, events, media, headers }: Answer, refer: (schema: Schema) => unknown): object {
  const content = {
    ...(schema && contentOf(refer(schema))),
    ...(events && { 'text/event-stream': { schema: { type: 'string' } } }),
    ...(media !== undefined && { [media]: { schema: { type: 'string' } } }),
  }
  const hasContent = Object.keys(content).length > 0
  return {
    description,
    ...defined({ content: hasContent ? content : undefined, headers: headers && headersOf(headers, !events) }),
  }
}

function contentOf(schema: unknown): object {
  return { 'application/json': { schema }, 'application/msgpack': {} }
}

function refusal(status: number, refer: (schema: Schema) => unknown): object {
  return {
    description: TITLES[status] ?? '',
    content: { 'application/problem+json': { schema: refer(problem) } },
    ...defined({ headers: REFUSAL_HEADERS[status] && headersOf(REFUSAL_HEADERS[status]) }),
  }
}

/** @param required whether each answer has them */
function headersOf(headers: Readonly<Record<string, string>>, required = true): object {
  const schema = { type: 'string' }
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, required, schema }]),
  )
}

/** The schema, with references to the components in place of schemas that have a title. */
function referred(schema: Schema, components: Map<string, unknown>): unknown {
  const { title, properties, items, anyOf } = schema
  if (title !== undefined && components.has(title)) return { $ref: `#/components/schemas/${title}` }
  const refer = (given: Schema) => referred(given, components)
  const members = properties && Object.entries(properties).map(([name, given]) => [name, refer(given)])
  const inner = {
    ...schema,
    ...defined({
      properties: members && Object.fromEntries(members),
      items: items && refer(items),
      anyOf: anyOf?.map(refer),
    }),
  }
  if (title === undefined) return inner
  components.set(title, inner)
  return { $ref: `#/components/schemas/${title}` }
}
