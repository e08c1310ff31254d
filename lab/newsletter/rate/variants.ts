/** The ways to send what waits, and how strictly the mail server counts. */

import type { QueueOptions } from '../../../src/index.ts'
import { byName } from '../../variants.ts'
import { LIMIT } from './settings.ts'

export type Store = 'array' | 'sqlite' | 'postgres' | 'redis'
/**
 * `bucket`: it takes 200 mails a second, and whoever sent less may send up to a second's worth at once, as most providers count. `window`: it never takes more
 * than 200 within any second, wherever that second begins.
 */
export type Counting = 'bucket' | 'window'

export interface Variant {
  title: string
  /** Where the mails wait. */
  store: Store
  counting: Counting
  rate?: NonNullable<QueueOptions['limits']>['rate']
  /** Of the limit, at least so much is used, and nothing is refused. */
  least?: number
}

const PLAIN = `${LIMIT}/s` as const
/**
 * No second has more than `count + burst` starts; two below the limit, since not all mails take equally long to arrive. The burst lets the rate be kept
 * although workers ask some ms late.
 */
const EXACT = { count: LIMIT - 6, per: '1s', burst: 4 } as const

const VARIANTS = {
  array: { title: 'array, many workers', store: 'array', counting: 'bucket' },
  sqlite: { title: 'Millpond on SQLite', store: 'sqlite', counting: 'bucket', rate: PLAIN, least: 0.99 },
  postgres: { title: 'Millpond on PostgreSQL', store: 'postgres', counting: 'bucket', rate: PLAIN, least: 0.99 },
  redis: { title: 'Millpond on Redis', store: 'redis', counting: 'bucket', rate: PLAIN, least: 0.99 },
  'array-window': { title: 'array, many workers', store: 'array', counting: 'window' },
  'sqlite-window': { title: 'Millpond on SQLite', store: 'sqlite', counting: 'window', rate: EXACT },
  'postgres-window': {
    title: 'Millpond on PostgreSQL',
    store: 'postgres',
    counting: 'window',
    rate: EXACT,
    least: 0.96,
  },
  'redis-window': { title: 'Millpond on Redis', store: 'redis', counting: 'window', rate: EXACT },
} satisfies Record<string, Variant>

export type VariantName = keyof typeof VARIANTS
export const { NAMES, variant } = byName<VariantName, Variant>(VARIANTS)
