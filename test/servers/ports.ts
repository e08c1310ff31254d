/** Ports that stay a server's own while it is down. */

import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

// Below the range that systems take the ports of outgoing connections from (32768 and up on Linux): a client that
// tries again and again to reach a server that is down could otherwise be given the server's own port, and keep it.
const FIRST = 10_000
const LAST = 21_999

/** Redis Cluster's nodes talk to each other on a port that much higher; that of the highest is still below the range. */
export const BUS = 10_000

const given = new Set<number>()

/** @param beside further ports that must be free too, as distances from the first */
export async function freePort(...beside: number[]): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1)
    if (given.has(port)) continue
    given.add(port)
    const all = await Promise.all([0, ...beside].map((distance) => isFree(port + distance)))
    if (all.every((free) => free)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
