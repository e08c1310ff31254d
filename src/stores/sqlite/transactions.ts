/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction lives on the thread's connection, begins with its first query, and shuts out every other writer
 * until it ends.
 */

import { types } from 'node:util'
import type { StoreTransactions } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { transactionsBy } from '../transactions.ts'
import { pushWithCaller } from './connection/caller-transaction.ts'
import type { ThreadClient } from './connection/client.ts'
import type { Value } from './connection/values.ts'
import type { Driver } from './driver.ts'
import { copyJournal, packJobs, pushOutcomes } from './wire.ts'

function checkParams(params: readonly unknown[]): Value[] {
  return params.map((value, index) => {
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
      return value
    if (types.isUint8Array(value)) return new Uint8Array(value)
    const what = types.isDate(value) ? 'a Date' : typeof value === 'object' ? 'an object' : typeof value
    const message = `parameter ${index + 1} is ${what}: SQLite takes null, numbers, bigints, strings and Uint8Array`
    throw new MillpondError('InvalidOption', message)
  })
}

export function transactionsOf(client: ThreadClient, driver: Driver): StoreTransactions {
  let count = 0
  return transactionsBy({
    takesSettings: true,
    assertOpen: () => client.assertOpen(),
    begin() {
      const number = ++count
      return {
        query: async (text, params) => client.call('query', { text, params: checkParams(params) }, number),
        async push({ jobs, settings = [], whole = false }) {
          for (const each of settings) await client.call('configure', each, number)
          return pushOutcomes(jobs, await client.call('push', { jobs: packJobs(jobs), whole }, number))
        },
        complete: (input) => client.complete(input, number),
        journal: (input) => client.call('journal', copyJournal(input), number),
        rollback: async () => void (await client.call('rollback', null, number)),
      }
    },
    complete: (input) => client.complete(input),
    async pushWith({ tx, jobs, settings = [], whole = false }) {
      const pushed = { jobs: packJobs(jobs), whole, settings, now: client.now() }
      return pushOutcomes(jobs, pushWithCaller(tx, { driver, path: client.path }, pushed))
    },
  })
}
