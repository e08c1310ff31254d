/**
 * `millpond/serve`: a queue for every language, over HTTP. This is what `npx millpond serve` runs; use it with a server of your own, as in
 * `Deno.serve((request) => service.handle(request))`.
 */

import { LARGEST_PAYLOAD } from '../values/encoding/encoding.ts'
import '../values/runtime/runtime.ts'
import { type AlertOptions, type Alerts, alerts } from '../alerts/index.ts'
import { Millpond } from '../pond/millpond.ts'
import { openStore } from '../stores/open.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { closeTimeout } from '../values/options/close-options.ts'
import {
  checkOptions,
  defined,
  isBoolean,
  isDuration,
  isFunction,
  isInteger,
  type Rules,
} from '../values/options/options.ts'
import { type Duration, kindOf, milliseconds } from '../values/time/duration.ts'
import { type OnError, reporter } from '../web/problem.ts'
import { tokenFault } from '../web/tokens.ts'
import type { UnauthorizedClient } from '../web/unauthorized.ts'
import { type Delivery, deliver } from '../webhook/delivery.ts'
import { LIMITS } from './bounds.ts'
import { Service } from './service.ts'

export type { UnauthorizedClient } from '../web/unauthorized.ts'
export type { Delivery } from '../webhook/delivery.ts'
export { signingKey } from '../webhook/signature.ts'

export interface ServeOptions {
  /**
   * Every request must have one of them as `Authorization: Bearer TOKEN`. Each is 16 to 1,024 visible ASCII characters. Unset: no token is
   * needed, and only requests whose Host is a name of this machine, or one of `hosts`, are accepted.
   */
  tokens?: readonly string[] | undefined
  /** Without tokens: further names that Host may have. None unless set. */
  hosts?: readonly string[] | undefined
  /**
   * Shows the dashboard at `/dashboard/`. With tokens, a browser asks for one of them; each may do everything. Without, requests
   * of this machine may, through no proxy; only behind `toNode` or `toFastify`, which tell who the client is. false unless set.
   */
  dashboard?: boolean | undefined
  /** Queues that are delivered to webhooks. None unless set. */
  deliveries?: readonly Delivery[] | undefined
  /** Rules on what the queues do, and who is told; see docs/alerts.md. Errors go to `onError` of the service. None unless set. */
  alerts?: Omit<AlertOptions, 'onError'> | undefined
  /** Most bytes of a request's body; 1 byte to 512 MiB, 2 MiB unless set. */
  maxBody?: number | undefined
  /** Most bytes of an encoded payload, result or progress report; 1 byte to 16 MiB, 1 MiB unless set. */
  maxPayload?: number | undefined
  /** Longest wait of a claim, a long poll or a push; 0 to 24 days, 60 s unless set. 0: requests never wait. */
  longPoll?: Duration | undefined
  /**
   * Most requests of each kind (pushes; polls and streams; claims) that wait at once; 0 to 1,000,000, 1,000 unless set.
   * Further ones are answered at once.
   */
  maxWaiting?: number | undefined
  /**
   * Most of them for one client, that is, for one address; 0 to 1,000,000, half of `maxWaiting` unless set. Behind a
   * proxy all clients count as one.
   */
  maxWaitingPerClient?: number | undefined
  /**
   * Connections that the server in front takes at once; 1 to 1,000,000, 1,024 unless set. Delayed 401s hold at most a
   * quarter of them; further 401s are answered at once.
   */
  maxConnections?: number | undefined
  /** Called for each request without a valid token, which is a 401. It is not given the tokens. Unset: nothing is called. */
  onUnauthorized?: ((client: UnauthorizedClient) => void) | undefined
  /** With this many queues, a push to a new queue is a 503 with `TooManyQueues`; 0 to 1,000,000, 10,000 unless set. */
  maxQueues?: number | undefined
  /** Most queues with series of their own in `/metrics`; 0 to 10,000, 100 unless set. Some figures of others are summed. */
  metricsQueues?: number | undefined
  /** Called with errors of the service; the client gets a 500 or 503 without details. Unset: the first one is a process warning. */
  onError?: OnError | undefined
}

const RULES: Rules<ServeOptions> = {
  tokens: areTokens,
  hosts: (value) =>
    (Array.isArray(value) && value.every((host) => typeof host === 'string')) || 'an array of host names',
  dashboard: isBoolean,
  deliveries: (value) => Array.isArray(value) || 'an array of deliveries',
  alerts: (value) => (typeof value === 'object' && value !== null) || 'an object of options',
  maxBody: isInteger(1, 512 * 1024 * 1024),
  maxPayload: isInteger(1, LARGEST_PAYLOAD),
  longPoll: isDuration(0),
  maxWaiting: isInteger(0, 1_000_000),
  maxWaitingPerClient: isInteger(0, 1_000_000),
  maxConnections: isInteger(1, 1_000_000),
  onUnauthorized: isFunction,
  maxQueues: isInteger(0, 1_000_000),
  metricsQueues: isInteger(0, 10_000),
  onError: isFunction,
}

/** A running service. */
export interface Served {
  /** Answers a request; never rejects. Errors are problem documents (RFC 9457). */
  handle(request: Request): Promise<Response>
  /** The kind of the store: `memory`, `sqlite`, `redis`, `postgres` or `rabbitmq`. */
  store: string
  /** Answers waiting requests with what is known; later requests do not wait. Call it when the server stops listening. */
  stop(): void
  /**
   * Closes the deliveries and the store. Claims whose client has disconnected are given back first. Call it when no request is under way.
   * @param options `timeout`: how long deliveries under way may take; 0 to 24 days, 30 s unless given
   * @throws InvalidOption
   */
  close(options?: { timeout?: Duration | undefined }): Promise<void>
}

/**
 * Opens the store of the URL and serves it.
 * @throws InvalidOption, InvalidName, UnknownScheme, DriverMissing, NotSupported, StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt,
 * StoreFailed, StoreVersion
 */
export async function serve(store: string, options?: ServeOptions): Promise<Served> {
  const given = checkOptions(options, RULES, 'serve')
  const {
    maxBody,
    maxPayload,
    maxWaiting,
    maxQueues,
    maxConnections,
    metricsQueues,
    deliveries = [],
  } = {
    ...LIMITS,
    ...defined(given),
  }
  const longPoll = milliseconds(given.longPoll ?? LIMITS.longPoll, 'longPoll')
  const { maxWaitingPerClient = Math.ceil(maxWaiting / 2) } = given
  const onError = reporter(given.onError)
  const opened = await openStore(store, {})
  const pond = new Millpond(opened, maxPayload)
  pond.on('error', (error) => onError(error, undefined))
  const { tokens = [], hosts = [] } = given
  const dashboard = given.dashboard === true ? await dashboardOf(pond, tokens, onError) : undefined
  const service = new Service({
    ...{ store: opened, pond, onError, tokens, hosts, ...defined({ dashboard }) },
    limits: {
      ...{ ...LIMITS, maxPayload, maxBody, longPoll, maxWaiting, maxWaitingPerClient, maxQueues, maxConnections },
      metricsQueues,
    },
    onUnauthorized: (client) => {
      try {
        given.onUnauthorized?.(client)
      } catch (error) {
        onError(error, undefined)
      }
    },
  })

  const receivers: (() => void)[] = []
  let watching: Alerts | undefined
  const close = async (timeout: number) => {
    await service.drained()
    await watching?.close()
    await pond.close({ timeout })
    for (const disconnect of receivers) disconnect()
  }
  try {
    // If every delivery has `onFailure`, process warnings of failed ones are not needed.
    if (deliveries.every(({ onFailure }) => onFailure !== undefined)) pond.on('dead', () => {})
    for (const delivery of deliveries) receivers.push(deliver(pond, delivery, maxPayload).disconnect)
    if (given.alerts !== undefined)
      watching = alerts(pond, { ...given.alerts, onError: (error) => onError(error, undefined) })
  } catch (error) {
    await close(0)
    throw error
  }
  return {
    handle: service.handle,
    store: pond.store.name,
    stop: () => service.stop(),
    close: async (ending = {}) => close(closeTimeout(ending)),
  }
}

/** Loaded only where it is asked for. */
async function dashboardOf(pond: Millpond, tokens: readonly string[], onError: OnError) {
  const { dashboard } = await import('../dashboard/index.ts')
  const allowed = tokens.map((token) => ({ token, operator: true, payloads: true }))
  return dashboard(pond, { ...(tokens.length === 0 && { rights: 'local' }), tokens: allowed, onError })
}

/** @throws InvalidOption. Unlike other options, a token is not shown in the error. */
function areTokens(value: unknown): true {
  const refuse = (fault: string) => new MillpondError('InvalidOption', `serve: ${fault}`)
  if (!Array.isArray(value)) throw refuse(`tokens must be an array of texts; got ${kindOf(value)}`)
  for (const token of value) {
    const fault = typeof token === 'string' ? tokenFault(token) : 'a token is a text'
    if (fault !== undefined) throw refuse(fault)
  }
  return true
}
