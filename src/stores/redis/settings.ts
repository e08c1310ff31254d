/** What the Redis store takes in its URL and options. */
import type { StoreOptions } from '../../store.ts'
import { type ClientSettings, settingsOf } from '../redis-client/settings.ts'

export interface Settings extends ClientSettings {
  /** How many replicas must have what a call has written before it is acknowledged. */
  wait: number
}

/** @throws InvalidOption */
export const storeSettings = (url: URL | string, options: StoreOptions): Settings =>
  settingsOf(url, options, {
    by: 'the Redis store',
    prefix: 'millpond',
    numbers: { wait: [0, 0, 100], timeout: [5000, 100, 600_000] },
    others: ['sentinelUsername', 'sentinelPassword'],
  })
