/**
 * Requests without a valid token. Each is reported; the more of them a client sends, the later each is answered.
 *
 * A request with a valid token is never delayed, nor refused because of invalid ones before it. Behind a proxy all
 * clients have one address, so a client with invalid tokens would lock out the others. The delay does not protect the
 * token; its length does: 96 random bits cannot be guessed. The delay keeps guessing cheap for the service. It depends
 * only on the number of invalid requests, so it reveals nothing about the token.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { TtlMap } from '../values/collections/ttl-map.ts'
import { Permits } from './permits.ts'
import { Refusal } from './problem.ts'

/** A client that got a 401, for `onUnauthorized`. */
export interface UnauthorizedClient {
  /** An IPv4 address, or the first half of an IPv6 address; undefined if the server does not provide it. */
  address: string | undefined
  /** How many such requests came from this address, this one included, each less than a minute after the last. */
  times: number
}

/** So many are answered without delay, as mistakes. Then the delay doubles from FIRST_DELAY to MAX_DELAY, in milliseconds. */
const FREE_ATTEMPTS = 5
const FIRST_DELAY = 100
const MAX_DELAY = 2000
/** The share of all connections that delayed requests may hold. Further requests are answered at once. */
const MAX_DELAYED_SHARE = 0.25
/** Milliseconds without another such request, after which a client is forgotten. */
const FORGET_AFTER = 60_000
/** Most clients that are remembered, about 100 bytes each; the longest silent are forgotten first. */
const MAX_CLIENTS = 1000

export class UnauthorizedClients {
  /** How many requests came, by address. */
  readonly #times = new TtlMap<number>({ ttl: FORGET_AFTER, entries: MAX_CLIENTS })
  readonly #permits: Permits
  readonly #stopping: AbortSignal
  readonly #report: (client: UnauthorizedClient) => void

  /** @param maxConnections that the server takes at once @param report must not throw */
  constructor(maxConnections: number, stopping: AbortSignal, report: (client: UnauthorizedClient) => void) {
    this.#permits = new Permits(Math.floor(maxConnections * MAX_DELAYED_SHARE))
    this.#stopping = stopping
    this.#report = report
  }

  /** Resolves with the refusal when it is time to send it, or the client has hung up. */
  async refusal(address: string | undefined, hangUp: AbortSignal): Promise<Refusal> {
    const times = (this.#times.get(address ?? '') ?? 0) + 1
    this.#times.put(address ?? '', times)
    this.#report({ address, times })
    // If the server gives no addresses, the delay would hit all clients.
    const delay = address === undefined ? 0 : delayAfter(times)
    const free = delay === 0 ? undefined : this.#permits.take()
    if (free !== undefined) {
      await sleep(delay, undefined, { signal: AbortSignal.any([hangUp, this.#stopping]) }).catch(() => {})
      free()
    }
    const headers = { 'www-authenticate': 'Bearer realm="millpond"' }
    return new Refusal(401, 'Send the token: Authorization: Bearer TOKEN.', { headers })
  }
}

/** Milliseconds. @param times how many requests came, this one included */
export function delayAfter(times: number): number {
  return times <= FREE_ATTEMPTS ? 0 : Math.min(MAX_DELAY, FIRST_DELAY * 2 ** (times - FREE_ATTEMPTS - 1))
}
