/** The ways to send what waits. */
import type { QueueOptions } from '../../../src/index.ts'
import { LIMIT } from './settings.ts'

export type Store = 'array' | 'sqlite' | 'postgres' | 'redis'

export interface Variant {
  title: string
  /** Where the mails wait. */
  store: Store
  rate?: NonNullable<QueueOptions['limits']>['rate']
  /** It stays as near to the limit as it can, and is never refused. */
  promises?: true
}

/** A GCRA rate starts at most `count + burst - 1` within a second: none has more than the limit allows. */
const EXACT = { count: LIMIT - 2, per: '1s', burst: 2 } as const

export const VARIANTS = {
  array: { title: 'array, many workers', store: 'array' },
  simple: { title: "Millpond on SQLite, '200/s'", store: 'sqlite', rate: `${LIMIT}/s` },
  sqlite: { title: 'Millpond on SQLite', store: 'sqlite', rate: EXACT, promises: true },
  postgres: { title: 'Millpond on PostgreSQL', store: 'postgres', rate: EXACT, promises: true },
  redis: { title: 'Millpond on Redis', store: 'redis', rate: EXACT, promises: true },
} satisfies Record<string, Variant>

export type VariantName = keyof typeof VARIANTS

export function variant(name: VariantName): Variant {
  return VARIANTS[name]
}

export function isVariant(name: string): name is VariantName {
  return Object.hasOwn(VARIANTS, name)
}

export const NAMES = Object.keys(VARIANTS).filter(isVariant)
