/**
 * A route: what it takes, what it answers, and what does the work. Requests are matched, checked and described (`openapi.ts`) by the same
 * table, so that the description cannot differ from what is served.
 */
import { segmentsOf } from '../web/path.ts'
import type { Properties, Query, Schema } from './schema.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export interface Answer {
  description: string
  /** Of the body; none where there is no body. */
  schema?: Schema
  /** Whether server-sent events are on offer, too. */
  events?: boolean
  headers?: Readonly<Record<string, string>>
}

/** What a handler gets; everything in it is checked. */
export interface Call<Body, Query> {
  request: Request
  /** Of the path, decoded. */
  params: Readonly<Record<string, string>>
  query: Query
  body: Body
}

export interface Route<Body = unknown, Parameters extends Properties = Properties> {
  method: Method
  /** With `{name}` for what varies. A segment is matched by one segment. */
  path: string
  /** Its operationId. */
  id: string
  tag: 'jobs' | 'claims' | 'queues' | 'service'
  summary: string
  description?: string
  query?: Parameters
  /** Request headers that have a meaning here. */
  headers?: Properties
  /**
   * Every POST has one, if only of nothing: its Content-Type, or a header in its place, is what forms of other sites cannot send. Without
   * `required` no body at all stands for an empty object.
   */
  body?: { schema: Schema<Body>; required: boolean }
  answers: Readonly<Record<number, Answer>>
  /** Statuses of problem documents besides those that any route may answer with, and those of a body. */
  problems: readonly number[]
  /** Answered without a token. */
  open?: boolean
  /** May throw Refusals and MillpondErrors. */
  handle(call: Call<Body, Query<Parameters>>): Response | Promise<Response>
}

/** Forgets the types of body and query: they have been checked by the route's schemas when `handle` is called. */
export function route<Body = unknown, Parameters extends Properties = Properties>(
  route: Route<Body, Parameters>,
): Route {
  return route as Route
}

export interface Matched {
  /** Those of the path, by method; empty where no route has the path. */
  routes: ReadonlyMap<string, Route>
  params: Readonly<Record<string, string>>
}

const NOTHING: Matched = { routes: new Map(), params: {} }

interface Template {
  segments: readonly string[]
  routes: Map<string, Route>
}

export class Router {
  /** By the number of segments. */
  readonly #templates = new Map<number, Template[]>()
  readonly #open: ReadonlySet<string>

  constructor(routes: readonly Route[]) {
    this.#open = new Set(routes.filter(({ open }) => open === true).map(({ method, path }) => `${method} ${path}`))
    const byPath = Map.groupBy(routes, ({ path }) => path)
    for (const [path, own] of byPath) {
      const segments = path.slice(1).split('/')
      const same = this.#templates.get(segments.length) ?? []
      same.push({ segments, routes: new Map(own.map((one) => [one.method, one])) })
      this.#templates.set(segments.length, same)
    }
  }

  /** Whether the route is answered without a token; asked before anything else is looked at. */
  isOpen(method: string, pathname: string): boolean {
    return this.#open.has(`${method} ${pathname}`)
  }

  /** @throws Refusal: 400, InvalidPath */
  match(pathname: string): Matched {
    const given = segmentsOf(pathname)
    for (const { segments, routes } of this.#templates.get(given.length) ?? []) {
      const params: Record<string, string> = {}
      const fits = segments.every((segment, index) => {
        const text = given[index] ?? ''
        if (!segment.startsWith('{')) return segment === text
        params[segment.slice(1, -1)] = text
        return text !== ''
      })
      if (fits) return { routes, params }
    }
    return NOTHING
  }
}
