/** The queues that are measured, each said in the bench's terms; `contenders/` says how, and why with those settings. */
import type { Contender } from '../bench/contender.ts'

export interface Setting {
  /** Of a server, or a database, with nothing in it. */
  url: string
  /** Slots of the worker. */
  concurrency: number
  /** Finished jobs leave at once; else they stay for an hour. Graphile Worker always removes them. */
  forget: boolean
  /** How jobs come to be claimable: at once; a tenth of them once more, after their first attempt failed; or all 50 ms after their push. Millpond alone. */
  path?: 'plain' | 'retried' | 'delayed'
}

export type Open = (setting: Setting) => Promise<Contender>

const CONTENDERS = {
  'Millpond on Redis': async () => (await import('./contenders/millpond.ts')).open,
  'Millpond on PostgreSQL': async () => (await import('./contenders/millpond.ts')).open,
  BullMQ: async () => (await import('./contenders/bullmq.ts')).open,
  'pg-boss': async () => (await import('./contenders/pg-boss.ts')).polling,
  'pg-boss with NOTIFY': async () => (await import('./contenders/pg-boss.ts')).notified,
  'Graphile Worker': async () => (await import('./contenders/graphile.ts')).plain,
  'Graphile Worker, local queue': async () => (await import('./contenders/graphile.ts')).local,
} satisfies Record<string, () => Promise<Open>>

export type ContenderName = keyof typeof CONTENDERS

/** Loads only the library asked for: a fresh process measures one thing. */
export async function openContender(name: ContenderName, setting: Setting): Promise<Contender> {
  const open = await CONTENDERS[name]()
  return open(setting)
}
