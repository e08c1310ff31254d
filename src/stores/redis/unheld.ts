/**
 * Connections that do not hold the process. An open pond or cache alone keeps no process alive; calls that wait for an answer do, by the
 * timers of their deadlines. So sockets, and timers that reconnect, are unref'd for good.
 */
import type { Client } from './settings.ts'

/** @returns the client, all of whose connections are let go of, those that it makes later, too */
export function unheld<T extends Client>(client: T): T {
  client.on('reconnecting', () => unref(Reflect.get(client, 'reconnectTimeout')))
  if ('nodes' in client) {
    client.on('+node', unheld)
    for (const node of client.nodes()) unheld(node)
  } else {
    client.on('connect', () => unref(client.stream))
    unref(client.stream)
  }
  return client
}

/** Of a cluster: the connection on which it hears, which it keeps to itself and makes anew when its node is gone. */
export function unholdSubscriber(client: Client): void {
  const subscriber: unknown = Reflect.get(client, 'subscriber')
  const instance = call(subscriber, 'getInstance')
  if (typeof instance === 'object' && instance !== null) unref(Reflect.get(instance, 'stream'))
}

function unref(what: unknown): void {
  call(what, 'unref')
}

function call(what: unknown, name: string): unknown {
  if (typeof what !== 'object' || what === null) return undefined
  const method: unknown = Reflect.get(what, name)
  return typeof method === 'function' ? method.call(what) : undefined
}
