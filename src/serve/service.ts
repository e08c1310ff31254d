/**
 * `millpond serve` as a function from Request to Response, for any server of web standards.
 *
 *   guard (guard.ts, strangers.ts) ─► route (route.ts) ─► Accept, query, body (checked by the route's schemas) ─► handle (routes/)
 */
import type { Millpond } from '../pond/millpond.ts'
import type { Store } from '../store.ts'
import { readBody } from '../web/body.ts'
import { clientOf } from '../web/client.ts'
import { problem, Refusal, troubleOf } from '../web/problem.ts'
import type { OnError } from '../web/report.ts'
import { Sweeper } from '../worker/sweeper.ts'
import { Claims } from './claims.ts'
import { Guard } from './guard.ts'
import type { Limits } from './limits.ts'
import { checkAccept, checkContentType } from './negotiate.ts'
import { openApi } from './openapi.ts'
import { parseQuery } from './query.ts'
import { QueueLimit } from './queue-limit.ts'
import { invalid } from './refuse.ts'
import { type Route, Router } from './route.ts'
import { claimRoutes } from './routes/claims.ts'
import { jobRoutes } from './routes/jobs.ts'
import { queueRoutes } from './routes/queues.ts'
import { serviceRoutes } from './routes/service.ts'
import { check } from './schema.ts'
import { type Stranger, Strangers } from './strangers.ts'

export interface ServiceParts {
  store: Store
  pond: Millpond
  limits: Limits
  tokens: readonly string[]
  /** Further names that Host may have where there is no token. */
  hosts: readonly string[]
  onError: OnError
  /** Hears of every 401. */
  onUnauthorized?: (stranger: Stranger) => void
}

export class Service {
  readonly #router: Router
  readonly #guard: Guard
  readonly #limits: Limits
  readonly #onError: OnError
  readonly #claims: Claims
  /** Workers over HTTP have no process of ours that would sweep. */
  readonly #sweeper: Sweeper
  readonly #strangers: Strangers
  readonly #stop = new AbortController()

  constructor({ store, pond, limits, tokens, hosts, onError, onUnauthorized = () => {} }: ServiceParts) {
    this.#guard = new Guard(tokens, hosts)
    this.#strangers = new Strangers(limits.maxWaiting, this.#stop.signal, onUnauthorized)
    this.#limits = limits
    this.#onError = onError
    this.#claims = new Claims(store)
    const queueLimit = new QueueLimit(store, limits.maxQueues)
    this.#sweeper = new Sweeper(
      store,
      ({ queues }) => queueLimit.swept(queues),
      (error) => onError(error, undefined),
    )
    this.#sweeper.start()
    const { signal: stopping } = this.#stop
    const [claims, sweeper] = [this.#claims, this.#sweeper]
    const parts = { store, pond, sweeper, limits, queueLimit, onError, claims, stopping }
    const routes = [...jobRoutes(parts), ...claimRoutes(parts), ...queueRoutes(parts)]
    const described = [...routes, ...serviceRoutes(parts, () => document)]
    const document = openApi(described, tokens.length > 0)
    this.#router = new Router(described)
  }

  /** Never rejects. */
  readonly handle = async (request: Request): Promise<Response> => {
    try {
      return await this.#handle(request)
    } catch (error) {
      const trouble = troubleOf(error, this.#limits.retryAfter / 1000)
      if (trouble.ours) this.#onError(error, request)
      return problem(trouble.problem)
    }
  }

  /** Ends all that waits, with what is known; from now on nothing waits. */
  stop(): void {
    this.#stop.abort()
    this.#claims.stop()
  }

  /** Stops, and resolves when no claim is under way: none is left to its lease because the store closed before it was given back. */
  async drained(): Promise<void> {
    this.stop()
    await this.#claims.drained()
    await this.#sweeper.stop()
  }

  async #handle(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    this.#guard.checkOrigin(request)
    if (!this.#router.isOpen(method, pathname) && !this.#guard.knows(request)) {
      throw await this.#strangers.refuse(clientOf(request), request.signal)
    }
    const matched = this.#router.match(pathname)
    const route = matched.routes.get(method)
    if (route === undefined) {
      if (matched.routes.size === 0)
        throw new Refusal({ status: 404, detail: 'There is nothing at this path. See /openapi.json.' })
      const allow = [...matched.routes.keys()].flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : [one])).join(', ')
      return problem({ status: 405, detail: `At this path there is ${allow}.`, headers: { allow } })
    }
    checkAccept(request, route.answers[200]?.events ?? false)
    const query = parseQuery(searchParams, route.query ?? {})
    const body = await this.#body(request, route)
    return route.handle({ request, params: matched.params, query, body })
  }

  async #body(request: Request, { body }: Route): Promise<unknown> {
    if (body === undefined) return undefined
    const optional = !body.required
    const sent = checkContentType(request, body.required) ? await readBody(request, this.#limits, optional) : undefined
    const value = sent === undefined && optional ? {} : sent
    const issues = check(value, body.schema)
    if (issues.length > 0) throw invalid(422, 'The body', issues)
    return value
  }
}
