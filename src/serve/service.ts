/**
 * `millpond serve` as a function from Request to Response, for any Web-standard server.
 *
 *   guard.ts, unauthorized.ts ─► route.ts ─► Accept, query, body: request-input.ts ─► the handler: routes/
 */
import { PondMetrics } from '../metrics/index.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { Store } from '../store.ts'
import { answer } from '../web/answer.ts'
import { clientOf } from '../web/permits.ts'
import { errorAnswer, type OnError, Refusal } from '../web/problem.ts'
import { type UnauthorizedClient, UnauthorizedClients } from '../web/unauthorized.ts'
import { WorkerRegistry } from '../worker/registry.ts'
import { Sweeper } from '../worker/sweeper.ts'
import { ActionsOverHttp } from './acted.ts'
import type { Limits } from './bounds.ts'
import { Claims } from './claims.ts'
import { Guard } from './guard.ts'
import { openApi } from './openapi.ts'
import { QueueLimit } from './queue-limit.ts'
import { inputOf } from './request-input.ts'
import { Router } from './route.ts'
import { bulkRoutes } from './routes/bulk.ts'
import { claimRoutes } from './routes/claims.ts'
import { graphRoutes } from './routes/graphs.ts'
import { jobRoutes } from './routes/jobs.ts'
import { planRoutes } from './routes/plan.ts'
import { queueRoutes } from './routes/queues.ts'
import { scheduleRoutes } from './routes/schedules.ts'
import { serviceRoutes } from './routes/service.ts'
import { stepRoutes } from './routes/steps.ts'

export interface ServiceOptions {
  store: Store
  pond: Millpond
  limits: Limits
  tokens: readonly string[]
  /** Further names that Host may have without tokens. */
  hosts: readonly string[]
  onError: OnError
  /** Answers what is below `/dashboard`, and knows itself who may use it. */
  dashboard?: (request: Request) => Promise<Response>
  /** Called at every 401. */
  onUnauthorized?: (client: UnauthorizedClient) => void
}

export class Service {
  readonly #router: Router
  readonly #guard: Guard
  readonly #limits: Limits
  readonly #onError: OnError
  readonly #claims: Claims
  readonly #registry: WorkerRegistry
  /** Workers over HTTP do not sweep. */
  readonly #sweeper: Sweeper
  readonly #unauthorized: UnauthorizedClients
  readonly #dashboard: ((request: Request) => Promise<Response>) | undefined
  readonly #actions: ActionsOverHttp
  readonly #stop = new AbortController()

  constructor({ store, pond, limits, tokens, hosts, dashboard, onError, onUnauthorized = () => {} }: ServiceOptions) {
    this.#dashboard = dashboard
    this.#guard = new Guard(tokens, hosts)
    this.#unauthorized = new UnauthorizedClients(limits.maxConnections, this.#stop.signal, onUnauthorized)
    this.#limits = limits
    this.#onError = onError
    this.#registry = new WorkerRegistry(store)
    this.#claims = new Claims(store, this.#registry, (ms) => this.#sweeper.due(ms))
    const queueLimit = new QueueLimit(store, limits.maxQueues)
    this.#sweeper = new Sweeper(
      store,
      ({ queues }) => queueLimit.swept(queues),
      (error) => onError(error, undefined),
    )
    this.#sweeper.start()
    const { signal: stopping } = this.#stop
    const metrics = new PondMetrics(pond, limits.metricsQueues, (error) => onError(error, undefined))
    const bounds = { limits, queueLimit }
    this.#actions = new ActionsOverHttp(pond, tokens)
    const acted = this.#actions.acted.bind(this.#actions)
    const of = { store, pond, sweeper: this.#sweeper, claims: this.#claims, acted }
    const context = { ...of, ...bounds, metrics, onError, stopping }
    const routes = {
      jobs: [...jobRoutes(context), ...graphRoutes(context), ...stepRoutes(context)],
      claims: claimRoutes(context),
      queues: [...queueRoutes(context), ...bulkRoutes(context), ...planRoutes(context)],
      schedules: scheduleRoutes(context),
      service: serviceRoutes(context, () => document),
    }
    const document = openApi(routes, tokens.length > 0)
    this.#router = new Router(Object.values(routes).flat())
  }

  /** Never rejects. */
  readonly handle = async (request: Request): Promise<Response> => {
    try {
      return await this.#handle(request)
    } catch (error) {
      return errorAnswer(error, request, this.#limits.retryAfter / 1000, this.#onError)
    }
  }

  /** Answers requests that wait, with what is known; later requests do not wait. */
  stop(): void {
    this.#stop.abort()
    this.#claims.stop()
  }

  /** Stops, and resolves when no claim is under way, so that every claim can be given back before the store is closed. */
  async drained(): Promise<void> {
    this.stop()
    await this.#claims.drained()
    await this.#sweeper.stop()
    await this.#registry.close()
    await this.#actions.close()
  }

  async #handle(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    this.#guard.checkHost(request)
    if (this.#dashboard !== undefined && /^\/dashboard(?:\/|$)/.test(pathname)) return this.#dashboard(request)
    this.#guard.checkOrigin(request)
    if (!this.#router.isOpen(method, pathname) && !this.#guard.isAuthorized(request)) {
      throw await this.#unauthorized.refusal(clientOf(request), request.signal)
    }
    const { routes, params } = this.#router.match(pathname)
    if (routes.size === 0) throw new Refusal(404, 'There is nothing at this path. See /openapi.json.')
    const route = routes.get(method)
    if (route === undefined) {
      const allow = [...routes.keys()].map((one) => (one === 'GET' ? 'GET, HEAD' : one)).join(', ')
      throw new Refusal(405, `At this path there is ${allow}.`, { headers: { allow } })
    }
    const done = await route.handle({ request, params, ...(await inputOf(request, searchParams, route, this.#limits)) })
    return done instanceof Response ? done : answer(request, done)
  }
}
