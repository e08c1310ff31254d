import type { Capabilities } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'

export const CAPABILITIES: Capabilities = {
  ...{ durable: true, shared: true, pipelined: true, transactions: false, replicas: false, settings: true },
  ...{ delays: true, priorities: true, keys: false, results: false, limits: false, rates: false, groups: false },
  ...{ find: false, lists: false, text: false, cancel: false, update: false, requeue: false, remove: false },
  ...{ removeQueue: true, restore: true, counts: false, histograms: false, workers: false },
}

export function lacking(capability: keyof Capabilities, what: string): MillpondError {
  return new MillpondError('NotSupported', `${what} needs a store with the capability ${capability}, which RabbitMQ lacks`)
}

/** An operation that cannot be done. */
export const lacks = (capability: keyof Capabilities, what: string) => (): Promise<never> =>
  Promise.reject(lacking(capability, what))
