/** The store of a verb: it must be there already, so that a mistyped path or queue makes nothing. */
import { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import type { Store } from '../store.ts'
import { assertMigrated, openExisting } from '../stores/existing.ts'
import { LARGEST_PAYLOAD } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { didYouMean } from '../values/options/did-you-mean.ts'
import { checkQueueName } from '../values/settings/names.ts'
import { type Arguments, orUsageError } from './arguments.ts'

export interface Opened {
  pond: Millpond
  store: Store
}

/**
 * Opens the store of `--store`, and closes it afterwards. Tables stay as they are: whoever runs one command must not keep programs of an
 * older release from starting again.
 * @throws UsageError, StoreVersion, and as `Millpond.open` does
 */
export async function withStore<T>(args: Arguments<'store'>, use: (opened: Opened) => Promise<T>): Promise<T> {
  await assertMigrated(args.store())
  const store = await openExisting(args.store())
  const pond = new Millpond(store, LARGEST_PAYLOAD)
  try {
    return await use({ pond, store })
  } finally {
    await pond.close()
  }
}

/** A queue that the store knows. @throws UsageError, QueueUnknown */
export async function knownQueue({ pond, store }: Opened, given: string | undefined): Promise<Queue> {
  const name = orUsageError('', () => checkQueueName(given))
  const [found] = await store.operations.stats({ queue: name, minutes: 0 })
  if (found !== undefined) return pond.queue(name)
  const known = (await store.operations.stats({ minutes: 0 })).map(({ queue }) => queue)
  const hint = didYouMean(name, known) || '; millpond stats lists those that it has'
  const message = `the store has no queue ${JSON.stringify(name)}${hint}`
  throw new MillpondError('QueueUnknown', message)
}

/** @throws JobUnknown */
export function unknownJob(id: string): MillpondError {
  return new MillpondError(
    'JobUnknown',
    `the store does not know the job ${id}, or no longer: look at the ID, and at --store`,
    { id },
  )
}
