/** A store and a pond on it. Workers over HTTP need the store itself: their claims outlive the request, and this process. */

import { Millpond } from '../pond/millpond.ts'
import type { Store } from '../store.ts'
import { openStore } from '../stores/open.ts'
import { MAX_PAYLOAD } from '../values/encoding.ts'

export interface Opened {
  store: Store
  /** Closing it closes the store. */
  pond: Millpond
}

/** @throws InvalidOption, UnknownScheme, StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreVersion */
export async function openPond(url: string, maxPayload = MAX_PAYLOAD): Promise<Opened> {
  const store = await openStore(url, {})
  // A second `open` would be another store where the store is in memory.
  return { store, pond: new Millpond(store, maxPayload) }
}
