/**
 * Whether an argument is over the server's `proto-max-bulk-len`. The server refuses it at its first bytes and closes the connection. With
 * the rest unread, the system may reset the connection before the client has read why, so it looks like any lost connection.
 */
import { connected } from '../../redis-client/client.ts'
import { isReply } from '../../redis-client/errors.ts'
import type { Client, ClientSettings } from '../../redis-client/settings.ts'
import { mastersOf } from './server.ts'

/** In bytes: no `proto-max-bulk-len` is smaller. */
const SMALL = 1024 ** 2
/** Connections that end at the same call, where the server does not say its setting. */
const MOST_LOST = 3

/** @param lost how many connections have ended while the call was under way */
export async function isTooLong(
  command: readonly (string | Buffer | number)[],
  lost: number,
  client: Client,
  settings: ClientSettings,
): Promise<boolean> {
  const longest = Math.max(...command.map((arg) => (typeof arg === 'number' ? 0 : Buffer.byteLength(arg))))
  if (longest <= SMALL) return false
  try {
    await connected(client, settings)
    const limits = await Promise.all(mastersOf(client).map((node) => node.config('GET', 'proto-max-bulk-len')))
    const known = limits.map((limit) => (Array.isArray(limit) ? Number(limit[1]) : Number.NaN))
    if (!known.some(Number.isNaN)) return longest > Math.min(...known)
  } catch (error) {
    // The server is away again, and the call is tried again.
    if (!isReply(error)) return false
  }
  return lost >= MOST_LOST
}
