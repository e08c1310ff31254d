/** How many requests may wait at once, in all and for one client; and what counts as one client. */
import { isIPv6 } from 'node:net'

export class Permits {
  readonly #most: number
  readonly #mostPerClient: number
  readonly #byClient = new Map<string, number>()
  #taken = 0

  constructor(most: number, mostPerClient = most) {
    this.#most = most
    this.#mostPerClient = mostPerClient
  }

  /**
   * @param client as `clientOf` names it; undefined if it is not known: then only the number in all counts
   * @returns a function that frees the permit, once; undefined if there is none
   */
  take(client?: string): (() => void) | undefined {
    const own = client === undefined ? 0 : (this.#byClient.get(client) ?? 0)
    if (this.#taken >= this.#most || own >= this.#mostPerClient) return undefined
    this.#add(client, 1)
    let held = true
    return () => {
      if (held) this.#add(client, -1)
      held = false
    }
  }

  #add(client: string | undefined, change: 1 | -1): void {
    this.#taken += change
    if (client === undefined) return
    const own = (this.#byClient.get(client) ?? 0) + change
    if (own === 0) this.#byClient.delete(client)
    else this.#byClient.set(client, own)
  }
}

const clients = new WeakMap<Request, string>()

/**
 * What tells one client from another: its IPv4 address, or the first half of its IPv6 address, because one machine has
 * the whole other half. Known only of requests that came by node:http, else undefined. Behind a proxy it is the proxy
 * for all.
 */
export function clientOf(request: Request): string | undefined {
  return clients.get(request)
}

/** @param client as `clientOf` has it */
export function setClient(request: Request, client: string | undefined): void {
  if (client !== undefined) clients.set(request, client)
}

/** The client that has an address. */
export function network(address: string): string {
  // IPv4, as a socket for both kinds shows it.
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address
  const [before = '', after] = address.toLowerCase().split('%', 1)[0]?.split('::') ?? []
  const groups = (text: string | undefined) => (text ? text.split(':') : [])
  const [head, tail] = [groups(before), groups(after)]
  const zeros = Array(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}
