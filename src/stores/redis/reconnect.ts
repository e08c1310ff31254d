/** Gives up connections on which the server has fallen silent. Without that they stay open until the system notices, minutes later. */
import type { Redis } from 'ioredis'
import type { Client } from './settings.ts'

/** Milliseconds in which a node of a cluster must answer to a PING. */
const PING = 1000

/** What was under way on the connection fails as if it had been cut; a new one is made. */
export function giveUp(client: Client): void {
  if (!('nodes' in client)) {
    client.disconnect(true)
    return
  }
  // Which node is silent is seen by asking all. The client finds out by itself who has taken its place.
  for (const node of client.nodes('all')) if (node.status !== 'wait') giveUpSilent(node)
  client.refreshSlotsCache()
  setTimeout(() => client.refreshSlotsCache(), PING + 100).unref()
}

function giveUpSilent(node: Redis): void {
  const timer = setTimeout(() => node.disconnect(), PING).unref()
  node.ping().then(
    () => clearTimeout(timer),
    () => clearTimeout(timer),
  )
}
