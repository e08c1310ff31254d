/** What the unit tests share: a store of which only what a test gives is there, and ways to wait. */
import type { Capabilities, ClaimedJob, Operations, Store } from '../../src/store.ts'
import { type ErrorCode, isMillpondError } from '../../src/values/errors.ts'

/** A store that has only the given operations; it is there to fail in ways that a real one will not on demand. */
export function storeOf(given: Partial<Operations>, more: Partial<Store> = {}): Store {
  const notThere: ProxyHandler<Partial<Operations>> = {
    get: (operations, name) =>
      Reflect.get(operations, name) ?? (() => Promise.reject(new Error(`the test gave no ${String(name)}`))),
  }
  return {
    name: 'fake',
    capabilities: CAPABILITIES,
    // Whatever is not given rejects.
    operations: new Proxy(given, notThere) as Operations,
    listen: () => () => {},
    close: () => Promise.resolve(),
    ...more,
  }
}

const CAPABILITIES: Capabilities = {
  ...{ durable: false, shared: false, pipelined: false, transactions: false, replicas: false },
  ...{
    settings: true,
    delays: true,
    priorities: true,
    keys: true,
    results: true,
    limits: true,
    rates: true,
    groups: true,
  },
  ...{ find: true, lists: true, text: true, cancel: true, update: true, requeue: true, remove: true, restore: true },
  ...{ histograms: true, workers: false },
}

/** For `assert.throws` and `assert.rejects`. */
export const coded = (code: ErrorCode, message: RegExp = /./) => {
  return (thrown: unknown) => {
    if (!isMillpondError(thrown, code) || !message.test(thrown.message)) {
      throw new Error(`expected ${code} with ${message}, got ${String(thrown)}`, { cause: thrown })
    }
    return true
  }
}

export function claimedJob(id: string, given: Partial<ClaimedJob> = {}): ClaimedJob {
  return {
    id,
    fence: 1,
    attempt: 1,
    attempts: 10,
    priority: 4,
    group: null,
    key: null,
    timeout: null,
    trace: null,
    pushedAt: 0,
    dueAt: 0,
    data: { encoding: 'json', body: 'null' },
    ...given,
  }
}
