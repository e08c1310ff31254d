/** What every queue that is measured can do, said in one way; `contenders/` says how each does it. */

export interface Item {
  n: number
  /** When it was pushed, by the machine's monotonic clock in milliseconds; where the wait is measured. */
  sent?: number
}
export type Handler = (item: Item) => Promise<void>

/** `none`: in memory. The others: SQLite's `synchronous`, in WAL mode. */
export type Durability = 'none' | 'full' | 'normal'

export interface Setting {
  durability: Durability
  /** A folder of this process alone, on a real disk. */
  dir: string
  concurrency: number
  /** Finished jobs leave at once instead of being kept. */
  forget: boolean
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
export type ContenderName = 'millpond' | 'fastq' | 'p-queue' | 'plainjob'

const CONTENDERS: Record<ContenderName, () => Promise<{ open: Open }>> = {
  millpond: () => import('./contenders/millpond.ts'),
  fastq: () => import('./contenders/fastq.ts'),
  'p-queue': () => import('./contenders/p-queue.ts'),
  plainjob: () => import('./contenders/plainjob.ts'),
}

/** Loads only the library asked for: a fresh process measures one thing. */
export async function openContender(name: ContenderName, setting: Setting): Promise<Contender> {
  const { open } = await CONTENDERS[name]()
  return open(setting)
}

/** Milliseconds by a clock that all processes of the machine share. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
