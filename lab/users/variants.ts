/** The ways to do it, each loaded only in the process that needs it. */
import { byName } from '../variants.ts'
import type { Consume, Serve } from './service.ts'

export interface Variant {
  title: string
  serve: () => Promise<Serve>
  /** In a process of its own. */
  consume?: () => Promise<Consume>
  /** It writes no rows. */
  keepsNothing?: true
  /** Millpond's queue, whose jobs can be followed. */
  ours?: true
  /** At 64 connections, of the rate of the handler that does nothing. */
  least?: number
  /** Every row has to be there this soon after the last request, in ms. */
  within?: number
}

const VARIANTS = {
  nothing: {
    title: 'no-op handler',
    serve: async () => (await import('./services/nothing.ts')).serve,
    keepsNothing: true,
  },
  insert: {
    title: 'insert first',
    serve: async () => (await import('./services/insert.ts')).serve,
  },
  inside: {
    title: 'Redis list, consumer in the server',
    serve: async () => (await import('./services/list.ts')).serveAndConsume,
  },
  apart: {
    title: 'Redis list, consumer apart',
    serve: async () => (await import('./services/list.ts')).serve,
    consume: async () => (await import('./services/list.ts')).consume,
  },
  grouped: {
    title: 'grouped inserts, no queue',
    serve: async () => (await import('./services/grouped.ts')).serve,
    least: 0.8,
  },
  sqlite: {
    title: 'Millpond on SQLite',
    serve: async () => (await import('./services/millpond.ts')).sqlite.serve,
    consume: async () => (await import('./services/millpond.ts')).sqlite.consume,
    ours: true,
    within: 1000,
  },
  redis: {
    title: 'Millpond on Redis',
    serve: async () => (await import('./services/millpond.ts')).redis.serve,
    consume: async () => (await import('./services/millpond.ts')).redis.consume,
    ours: true,
    least: 0.6,
    within: 1000,
  },
  postgres: {
    title: 'Millpond on PostgreSQL',
    serve: async () => (await import('./services/millpond.ts')).postgres.serve,
    consume: async () => (await import('./services/millpond.ts')).postgres.consume,
    ours: true,
    least: 0.45,
    within: 1000,
  },
} satisfies Record<string, Variant>

export type VariantName = keyof typeof VARIANTS
export const { NAMES, variant } = byName<VariantName, Variant>(VARIANTS)
