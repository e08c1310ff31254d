/** What every queue that is measured can do, said in one way; `contenders/` says how each does it, and why with those settings. */

export interface Item {
  n: number
  /** When it was pushed, by the machine's monotonic clock in milliseconds; where the wait is measured. */
  sent?: number
  /** Where groups are measured. */
  group?: string
}
export type Handler = (item: Item) => Promise<void>

export interface Setting {
  /** Of a store with nothing in it. */
  url: string
  /** Slots of the worker. */
  concurrency: number
  /** Finished jobs leave at once; else they stay for an hour. Graphile Worker always removes them. */
  forget: boolean
  /** How many jobs of a group may run at once; unless given, jobs are in no groups. */
  limit?: number
  /**
   * How jobs come to be claimable: at once; a tenth of them again, after their first attempt failed; or 50 ms after their push.
   * Only Millpond has the latter two.
   */
  path?: 'plain' | 'retried' | 'delayed'
}

/** One queue, without a worker until `work`. */
export interface Line {
  /** Settles, or returns, once the queue holds the item. */
  push(item: Item): Promise<unknown> | undefined
  /** The same for many in one call; undefined where the library has no such call. */
  pushMany: ((items: Item[]) => Promise<unknown>) | undefined
  /** Starts the handlers. */
  work(): void
  /** Resolves when `total` items were handled and the store has taken note of all of them. */
  settled(total: number): Promise<void>
  stop(): Promise<void>
}

export interface Contender {
  /** A new, empty queue. */
  line(name: string, handler: Handler): Line
  close(): Promise<void>
}

export type Open = (setting: Setting) => Promise<Contender>

const CONTENDERS = {
  Millpond: async () => (await import('./contenders/millpond.ts')).open,
  fastq: async () => (await import('./contenders/fastq.ts')).open,
  'p-queue': async () => (await import('./contenders/p-queue.ts')).open,
  plainjob: async () => (await import('./contenders/plainjob.ts')).open,
  GroupMQ: async () => (await import('./contenders/groupmq.ts')).open,
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
