/**
 * `millpond/serve`: a queue for every language, over HTTP. What `npx millpond serve` runs, for those who bring a server of their own:
 * `Deno.serve((request) => service.handle(request))`.
 */

import '../values/runtime.ts'
import { closeTimeout } from '../pond/close-options.ts'
import { type Duration, kindOf } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { checkOptions, isFunction, isInteger, type Rules } from '../values/options.ts'
import { type OnError, reporter } from '../web/report.ts'
import { isDuration, millisecondsOr } from '../web/settings.ts'
import { type Delivery, deliver } from './delivery.ts'
import { tokenFault } from './guard.ts'
import { LIMITS } from './limits.ts'
import { openPond } from './open.ts'
import { Service } from './service.ts'
import type { Stranger } from './strangers.ts'

export type { Delivery } from './delivery.ts'
export { signingKey } from './signature.ts'
export type { Stranger } from './strangers.ts'

export interface ServeOptions {
  /** Any of them is asked for as `Authorization: Bearer TOKEN`. Without one, only this machine's names are taken as Host. */
  tokens?: readonly string[]
  /** Further names that Host may have where there is no token. */
  hosts?: readonly string[]
  /** Queues that are delivered to webhooks. */
  deliveries?: readonly Delivery[]
  /** Bytes of a body; 2 MiB unless given. */
  maxBody?: number
  /** Bytes of an encoded payload, result or progress report; 1 MiB unless given. */
  maxPayload?: number
  /** Longest wait of a claim, a long poll or a push; 60 s unless given. */
  maxWait?: Duration
  /** How many requests of each kind wait at once; 1,000 unless given. */
  maxWaiting?: number
  /** How many of those one client has, told by the address of its connection; half of `maxWaiting` unless given. Behind a proxy all are one client. */
  maxWaitingPerClient?: number
  /** Hears of every request without a right token, which is a 401. The tokens are not in it. */
  onUnauthorized?: (stranger: Stranger) => void
  /** How many queues there may be for a client to make another one; 10,000 unless given. Beyond, a push to a new one is a 503 with `TooManyQueues`. */
  maxQueues?: number
  /** Hears of errors that are the service's own. A process warning unless given. */
  onError?: OnError
}

const RULES: Rules<ServeOptions> = {
  tokens: (value) => tokensFault(value) ?? true,
  hosts: (value) =>
    (Array.isArray(value) && value.every((host) => typeof host === 'string')) || 'an array of host names',
  deliveries: (value) => Array.isArray(value) || 'an array of deliveries',
  maxBody: isInteger(1, 512 * 1024 * 1024),
  maxPayload: isInteger(1, 512 * 1024 * 1024),
  maxWait: isDuration('maxWait', 0),
  maxWaiting: isInteger(0, 1_000_000),
  maxWaitingPerClient: isInteger(0, 1_000_000),
  onUnauthorized: isFunction,
  maxQueues: isInteger(0, 1_000_000),
  onError: isFunction,
}

/** A store, served. */
export interface Served {
  /** From Request to Response; never rejects. */
  handle(request: Request): Promise<Response>
  /** The scheme of the store. */
  store: string
  /** Ends all that waits with what is known; from now on nothing waits. To be called when the server stops to listen. */
  stop(): void
  /**
   * Closes deliveries, giving them the time to finish, and lets go of the store. To be called when no request is under way; claims that nobody
   * waits for any more are given back first.
   */
  close(options?: { timeout?: Duration }): Promise<void>
}

/**
 * Opens the store and serves it.
 * @throws InvalidOption, InvalidName, UnknownScheme, StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreVersion
 */
export async function serve(store: string, options?: ServeOptions): Promise<Served> {
  const given = checkOptions(options, RULES, 'serve')
  const onError = reporter(given.onError)
  const maxPayload = given.maxPayload ?? LIMITS.maxPayload
  const opened = await openPond(store, maxPayload)
  const { pond } = opened
  pond.on('error', (error) => onError(error, undefined))
  const { maxBody = LIMITS.maxBody, maxWaiting = LIMITS.maxWaiting, maxQueues = LIMITS.maxQueues } = given
  const { maxWaitingPerClient = Math.ceil(maxWaiting / 2) } = given
  const maxWait = millisecondsOr(given.maxWait, LIMITS.maxWait)
  const limits = { ...LIMITS, maxPayload, maxBody, maxWait, maxWaiting, maxWaitingPerClient, maxQueues }
  const service = new Service({
    ...opened,
    limits,
    tokens: given.tokens ?? [],
    hosts: given.hosts ?? [],
    onError,
    onUnauthorized: (stranger) => {
      try {
        given.onUnauthorized?.(stranger)
      } catch (error) {
        onError(error, undefined)
      }
    },
  })

  const receivers: (() => void)[] = []
  const close = async (timeout: number) => {
    await service.drained()
    await pond.close({ timeout })
    for (const letGo of receivers) letGo()
  }
  try {
    // Whoever is told of failed deliveries needs no process warnings of them.
    if (given.deliveries?.every(({ onFailure }) => onFailure !== undefined)) pond.on('dead', () => {})
    for (const delivery of given.deliveries ?? []) receivers.push(deliver(pond, delivery, maxPayload))
  } catch (error) {
    await close(0)
    throw error
  }
  return {
    handle: service.handle,
    store: pond.store.name,
    stop: () => service.stop(),
    close: (ending = {}) => close(closeTimeout(ending)),
  }
}

/** @throws InvalidOption */
function tokensFault(value: unknown): string | undefined {
  if (!Array.isArray(value))
    throw new MillpondError('InvalidOption', `serve: tokens must be an array of texts; got ${kindOf(value)}`)
  for (const token of value) {
    const fault = typeof token === 'string' ? tokenFault(token) : 'a token is a text'
    // Not as other options are refused: that would show it.
    if (fault !== undefined) throw new MillpondError('InvalidOption', `serve: ${fault}`)
  }
  return undefined
}
