/**
 * An open pond or cache alone keeps no process alive; calls that wait for an answer do, by the timers of their deadlines. So sockets, and
 * timers that reconnect, are unref'd for good.
 */
import type { Client } from './settings.ts'

/** @returns the client. Connections that it makes later are unref'd, too */
export function unrefConnections<T extends Client>(client: T): T {
  client.on('reconnecting', () => unref(get(client, 'reconnectTimeout')))
  if ('nodes' in client) {
    client.on('+node', unrefConnections)
    for (const node of client.nodes()) unrefConnections(node)
  } else {
    client.on('connect', () => unref(client.stream))
    unref(client.stream)
    // With Sentinel: the connections on which it hears of a new master.
    client.on('failoverSubscribed', () => {
      const sentinels = get(get(get(client, 'connector'), 'failoverDetector'), 'sentinels')
      for (const sentinel of Array.isArray(sentinels) ? sentinels : []) unref(get(get(sentinel, 'client'), 'stream'))
    })
  }
  return client
}

/** Of a cluster: the connection on which it hears, which it keeps to itself and makes anew when its node is gone. */
export function unrefSubscriber(client: Client): void {
  unref(get(call(get(client, 'subscriber'), 'getInstance'), 'stream'))
}

function unref(what: unknown): void {
  call(what, 'unref')
}

function call(what: unknown, name: string): unknown {
  const method = get(what, name)
  return typeof method === 'function' ? method.call(what) : undefined
}

function get(what: unknown, name: string): unknown {
  return typeof what === 'object' && what !== null ? Reflect.get(what, name) : undefined
}
