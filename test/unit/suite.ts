/** What the unit tests share: a store of which only what a test gives is there, and ways to wait. */
import type { ClaimedJob, Store } from '../../src/store.ts'
import { type ErrorCode, isMillpondError } from '../../src/values/errors.ts'

const NOT_THERE = (name: string) => () => Promise.reject(new Error(`the test gave no ${name}`))

/** A store that has only the given operations; it is there to fail in ways that a real one will not on demand. */
export function storeOf(given: Partial<Store>): Store {
  return {
    name: 'fake',
    capabilities: { durable: false, shared: false, transactions: false },
    admin: { settings: NOT_THERE('settings'), list: NOT_THERE('list'), requeue: NOT_THERE('requeue') },
    configure: NOT_THERE('configure'),
    push: NOT_THERE('push'),
    claim: NOT_THERE('claim'),
    complete: NOT_THERE('complete'),
    fail: NOT_THERE('fail'),
    release: NOT_THERE('release'),
    extend: NOT_THERE('extend'),
    cancel: NOT_THERE('cancel'),
    sweep: NOT_THERE('sweep'),
    find: NOT_THERE('find'),
    stats: NOT_THERE('stats'),
    record: NOT_THERE('record'),
    noteClaims: NOT_THERE('noteClaims'),
    listen: () => () => {},
    close: NOT_THERE('close'),
    ...given,
  }
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
