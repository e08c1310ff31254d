/** What the unit tests share: a store with the operations that a test gives, and ways to check. */
import type { Capabilities, Store } from '../../src/store.ts'
import { type ErrorCode, isMillpondError } from '../../src/values/errors/errors.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { openPlainStore } from '../support/plain-store.ts'

/** A store with these operations, which may fail in ways that a real one will not on demand. It says that it can do all that a store can. */
export function storeOf(given: Meddling, more: Partial<Store> = {}): Store {
  return { ...meddled(openPlainStore(), given, CAPABILITIES), ...more }
}

const CAPABILITIES: Partial<Capabilities> = {
  ...{
    settings: true,
    delays: true,
    priorities: true,
    keys: true,
    once: true,
    results: true,
    logs: true,
    steps: true,
    limits: true,
    rates: true,
  },
  ...{ groups: true, find: true, lists: true, text: true, cancel: true, update: true, requeue: true, remove: true },
  ...{ restore: true, counts: true, histograms: true },
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

/** Of an attempt whose handler has no steps. */
export const noSteps = () => ({
  write: async () => {},
  read: async () => ({ entries: [], now: () => 0 }),
  find: async () => null,
  begin: () => ({ query: async () => [], commit: async () => {}, rollback: async () => {} }),
})
