/** Queues whose jobs have groups, with a limit on how many of a group run at once; `contenders/groups/` says how each does it. */

export interface GroupSetting {
  /** Of a server, or a database, with nothing in it but what other processes of this run put there. */
  url: string
  /** Slots of this process. */
  concurrency: number
  /** How many of a group may run at once. */
  limit: number
}

export interface Grouped {
  /** Pushes a job of each of these groups, in this order. Resolves when the queue has them all. */
  fill(groups: readonly string[]): Promise<void>
  /** Starts the handlers, who get their job's group. */
  work(handler: (group: string) => Promise<void>): void
}

export type OpenGrouped = (setting: GroupSetting) => Promise<Grouped>

const CONTENDERS = {
  Millpond: async () => (await import('./contenders/millpond.ts')).open,
  GroupMQ: async () => (await import('./contenders/groupmq.ts')).open,
  'pg-boss': async () => (await import('./contenders/pg-boss.ts')).open,
  'Graphile Worker': async () => (await import('./contenders/graphile.ts')).open,
} satisfies Record<string, () => Promise<OpenGrouped>>

export type GroupedName = keyof typeof CONTENDERS

/** Loads only the library asked for. */
export async function openGrouped(name: GroupedName, setting: GroupSetting): Promise<Grouped> {
  const open = await CONTENDERS[name]()
  return open(setting)
}
