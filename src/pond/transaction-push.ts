/** Pushes inside a transaction of the caller, which commits or rolls back. Nothing is emitted: the jobs come to be with its commit. */

import type { Store } from '../store.ts'
import type { NewJob, PushOutcome } from '../values/jobs/records.ts'
import { lacking } from '../values/operations/capabilities.ts'
import type { QueueSettings } from '../values/settings/settings.ts'

/** The producer of a queue, as far as it is needed here. */
interface Source {
  told(): Promise<void>
  readonly unsent: QueueSettings | undefined
}

interface Given {
  tx: unknown
  jobs: readonly NewJob[]
  /** All of the jobs or none. */
  whole?: boolean
}

/** @param sources of the queues of all jobs @throws NotSupported, TransactionMismatch, `Store…` */
export async function pushInTransaction(store: Store, sources: Iterable<Source>, given: Given): Promise<PushOutcome[]> {
  const { transactions } = store
  if (transactions === undefined) throw lacking(store, 'transactions', 'tx')
  const settings: QueueSettings[] = []
  for (const source of sources) {
    if (!transactions.takesSettings) await source.told()
    if (source.unsent !== undefined) settings.push(source.unsent)
  }
  return transactions.push({ ...given, ...(settings.length > 0 && { settings }) })
}
