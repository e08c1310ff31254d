/**
 * A route: what it takes, what it answers, and what does the work. The same table matches requests, checks them (`request-input.ts`) and
 * describes them (`openapi.ts`), so the description cannot differ from the service.
 */

import type { PondMetrics } from '../metrics/index.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { Store } from '../store.ts'
import { segmentsOf } from '../web/path.ts'
import type { OnError } from '../web/problem.ts'
import type { Sweeper } from '../worker/sweeper.ts'
import type { Acted } from './acted.ts'
import type { Limits } from './bounds.ts'
import type { Claims } from './claims.ts'
import type { Members, Properties, Schema } from './json-schema.ts'
import type { QueueLimit } from './queue-limit.ts'

/** What the handlers of routes work with. */
export interface RouteContext {
  store: Store
  pond: Millpond
  sweeper: Sweeper
  claims: Claims
  limits: Limits
  queueLimit: QueueLimit
  metrics: PondMetrics
  /** Tells of an action of the caller. */
  acted: (request: Request, action: Acted) => void
  onError: OnError
  /** Aborted when the service stops. */
  stopping: AbortSignal
}

export interface Answer {
  description: string
  /** Of the body; none if there is no body. */
  schema?: Schema
  /** Whether the client may have server-sent events instead. */
  events?: boolean
  /** Its media type. JSON or MessagePack unless set. */
  media?: string
  /** Each of these answers has them, but for streams of events. */
  headers?: Readonly<Record<string, string>>
}

/** The names in braces of a path. */
type NamesIn<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never

/** What a handler gets; everything in it is checked. */
interface Call<Path, Body, Query> {
  request: Request
  /** Of the path, decoded. */
  params: Readonly<Record<NamesIn<Path>, string>>
  query: Query
  body: Body
}

interface RouteDetails<Path, Body, Parameters extends Properties, Required extends Properties> {
  description?: string
  /** Parameters that may be left out, and those that may not. */
  query?: Parameters
  requiredQuery?: Required
  /** Request headers that have a meaning here, and those that clients made of the document should send. */
  headers?: Properties
  requiredHeaders?: Properties
  /** Every POST has one, even if it is empty: pages of other sites cannot send its Content-Type, nor a header that may stand for it. */
  body?: Schema<Body>
  /** Whether a request without a body counts as an empty object. */
  bodyOptional?: boolean
  answers: Readonly<Record<number, Answer>>
  /** Statuses of problem documents besides those of any route and of a body; 503 unless set. */
  problems?: readonly number[]
  /** Answered without a token. */
  open?: boolean
  /** @returns a Response, or the body of a 200. May throw Refusals and MillpondErrors. */
  handle(call: Call<Path, Body, Members<Required, Parameters>>): object | Promise<object>
}

export interface Route extends RouteDetails<string, unknown, Properties, Properties> {
  method: string
  /** With `{name}` for a variable segment. */
  path: string
  /** Its operationId. */
  id: string
  summary: string
}

/**
 * Forgets the types of body and query: the route's schemas have checked both when `handle` is called.
 * @param request method and path
 */
export function route<
  const Path extends `${'GET' | 'POST' | 'PATCH' | 'DELETE'} /${string}`,
  Body = unknown,
  Parameters extends Properties = Properties,
  Required extends Properties = Record<never, Schema>,
>(request: Path, id: string, summary: string, details: RouteDetails<Path, Body, Parameters, Required>): Route {
  const [method = '', path = ''] = request.split(' ')
  return { method, path, id, summary, ...(details as RouteDetails<string, unknown, Properties, Properties>) }
}

export interface Matched {
  /** Those of the path, by method; empty if no route has the path. */
  routes: ReadonlyMap<string, Route>
  params: Readonly<Record<string, string>>
}

export class Router {
  readonly #paths: { segments: readonly string[]; routes: ReadonlyMap<string, Route> }[] = []
  readonly #open: readonly Route[]

  constructor(routes: readonly Route[]) {
    this.#open = routes.filter(({ open }) => open)
    for (const [path, own] of Map.groupBy(routes, (one) => one.path)) {
      const byMethod = new Map(own.map((one) => [one.method, one]))
      this.#paths.push({ segments: path.slice(1).split('/'), routes: byMethod })
    }
  }

  /** Whether the route is answered without a token; asked before anything else is read. */
  isOpen(method: string, pathname: string): boolean {
    return this.#open.some((route) => route.method === method && route.path === pathname)
  }

  /** @throws Refusal: 400, InvalidPath */
  match(pathname: string): Matched {
    const given = segmentsOf(pathname)
    for (const { segments, routes } of this.#paths) {
      if (segments.length !== given.length) continue
      const params: Record<string, string> = {}
      const fits = segments.every((segment, index) => {
        const text = given[index] ?? ''
        if (!segment.startsWith('{')) return segment === text
        params[segment.slice(1, -1)] = text
        return text !== ''
      })
      if (fits) return { routes, params }
    }
    return { routes: new Map(), params: {} }
  }
}
