/** Where a request came from, as far as that is known: of those that came in by node:http. */
import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'

const clients = new WeakMap<Request, string>()

/**
 * What tells one client from another: its IPv4 address, or the first half of its IPv6 address, since a single machine has the other half to itself.
 * Undefined where it is not known. Behind a proxy it is the proxy for all.
 */
export function clientOf(request: Request): string | undefined {
  return clients.get(request)
}

export function setClient(request: Request, incoming: IncomingMessage): void {
  const { remoteAddress } = incoming.socket
  if (remoteAddress !== undefined) clients.set(request, network(remoteAddress))
}

/** For a request that was made of another one. */
export function copyClient(from: Request, to: Request): void {
  const client = clients.get(from)
  if (client !== undefined) clients.set(to, client)
}

/** An address as `clientOf` has it. */
export function network(address: string): string {
  // How a socket for both kinds shows IPv4.
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address
  const [before = '', after] = address.toLowerCase().split('%', 1)[0]?.split('::') ?? []
  const groups = (text: string | undefined) => (text ? text.split(':') : [])
  const [head, tail] = [groups(before), groups(after)]
  const zeros = Array(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}
