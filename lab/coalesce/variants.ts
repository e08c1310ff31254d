/** The ways to do it. */
import { byName } from '../variants.ts'
import { coalesced, constant, plain, type Serve, shared } from './service.ts'

export interface Variant {
  title: string
  serve: Serve
  /** Of servers, which divide the load between them. */
  processes: 1 | 2
  /** Where the processes share their flights. */
  store?: 'redis' | 'postgres'
  /** An answer outlives its flight, so that the flight is no ceiling. */
  reuses?: true
  /** One call at a time, and no calls that are not told of. */
  flies?: true
}

const TTL = { ttl: '1s' } as const

const VARIANTS = {
  constant: { title: 'constant answer', serve: constant, processes: 1 },
  plain: { title: 'plain: a call each', serve: plain, processes: 1 },
  coalesce: { title: 'coalesce', serve: coalesced(), processes: 1, flies: true },
  ttl: { title: 'coalesce, ttl 1 s', serve: coalesced(TTL), processes: 1, flies: true, reuses: true },
  constant2: { title: 'constant answer, 2 servers', serve: constant, processes: 2 },
  redis: { title: 'coalesce, shared on Redis', serve: shared(), processes: 2, store: 'redis', flies: true },
  'redis-ttl': {
    title: 'coalesce, shared on Redis, ttl 1 s',
    serve: shared(TTL),
    processes: 2,
    store: 'redis',
    flies: true,
    reuses: true,
  },
  postgres: { title: 'coalesce, shared on PostgreSQL', serve: shared(), processes: 2, store: 'postgres', flies: true },
  'postgres-ttl': {
    title: 'coalesce, shared on PostgreSQL, ttl 1 s',
    serve: shared(TTL),
    processes: 2,
    store: 'postgres',
    flies: true,
    reuses: true,
  },
} satisfies Record<string, Variant>

export type VariantName = keyof typeof VARIANTS
export const { NAMES, variant } = byName<VariantName, Variant>(VARIANTS)

/** Whose rate is the ceiling of so many processes. */
export const ceilingOf = (processes: 1 | 2): VariantName => (processes === 1 ? 'constant' : 'constant2')
