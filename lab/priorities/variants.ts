/** The queues, each loaded only in the processes that need it. */
import { byName } from '../variants.ts'
import { DELAYED } from './settings.ts'
import type { Transport } from './transport.ts'

export type Store = 'postgres' | 'redis' | 'rabbitmq'

/** All of them have a message on the disk before they confirm it. */
export const PLACES = { postgres: 'postgres', redis: 'redis-fsync', rabbitmq: 'rabbitmq' } as const satisfies Record<
  Store,
  string
>

export interface Variant {
  title: string
  store: Store
  /** Written by hand, without Millpond. */
  plain?: true
  transport: () => Promise<Transport>
  /** The 95th percentile of the waits of urgent jobs is at most this, in both scenarios, in ms. */
  within?: number
}

const VARIANTS = {
  postgres: {
    title: 'Millpond on PostgreSQL, priorities',
    store: 'postgres',
    transport: async () => (await import('./transports/millpond.ts')).plain,
  },
  'postgres-lane': {
    title: 'Millpond on PostgreSQL, with a lane',
    store: 'postgres',
    transport: async () => (await import('./transports/millpond.ts')).lane,
    within: DELAYED,
  },
  redis: {
    title: 'Millpond on Redis, priorities',
    store: 'redis',
    transport: async () => (await import('./transports/millpond.ts')).plain,
  },
  'redis-lane': {
    title: 'Millpond on Redis, with a lane',
    store: 'redis',
    transport: async () => (await import('./transports/millpond.ts')).lane,
    within: DELAYED,
  },
  rabbitmq: {
    title: 'RabbitMQ, prefetch 1, acknowledged at the end',
    store: 'rabbitmq',
    plain: true,
    transport: async () => (await import('./transports/rabbitmq.ts')).after,
  },
  'rabbitmq-early': {
    title: 'RabbitMQ, prefetch 1, acknowledged at the start',
    store: 'rabbitmq',
    plain: true,
    transport: async () => (await import('./transports/rabbitmq.ts')).before,
  },
  'rabbitmq-millpond': {
    title: 'Millpond on RabbitMQ, priorities',
    store: 'rabbitmq',
    transport: async () => (await import('./transports/millpond.ts')).plain,
  },
  'rabbitmq-lane': {
    title: 'Millpond on RabbitMQ, with a lane',
    store: 'rabbitmq',
    transport: async () => (await import('./transports/millpond.ts')).lane,
  },
} satisfies Record<string, Variant>

export type VariantName = keyof typeof VARIANTS
export const { NAMES, variant } = byName<VariantName, Variant>(VARIANTS)
