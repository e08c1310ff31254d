/** Where jobs are moved from: a store of Millpond's, or a rival's data. */
import { isRefusal, splitting } from '../batch/splitting.ts'
import type { MillpondError } from '../values/errors/errors.ts'
import type { JobRecord, JobState } from '../values/jobs/records.ts'
import type { GroupRecord } from '../values/settings/limits.ts'
import type { GivenSettings } from '../values/settings/settings.ts'

export type Counts = Record<JobState, number>

export interface QueueCounts {
  queue: string
  counts: Counts
}

/** What was set of a queue. */
export interface SourceSettings extends GivenSettings {
  paused: boolean
  /** Groups take turns. */
  grouped: boolean
  /** Groups with limits of their own. */
  groups: readonly GroupRecord[]
}

export interface Source {
  /** For messages: `sqlite`, `BullMQ`. */
  readonly name: string
  /** Of every queue, or at least of these. */
  counts(names?: readonly string[]): Promise<QueueCounts[]>
  /** null: the source knows no settings. */
  settings(queue: string): Promise<SourceSettings | null>
  /** What an earlier move had taken when it ended, and other jobs that are soon due. */
  leftovers(queue: string): AsyncIterable<Batch>
  /** Goes once over the jobs of a queue that do not run, leftovers included, and takes them. One pass of a queue at a time. */
  pass(queue: string): AsyncIterable<Batch>
  /** Whether workers of the source run jobs that were pushed before this time, in milliseconds since 1970. */
  runsOlder(queue: string, time: number): Promise<boolean>
  /** Whether the job was put back so lately that passes leave it out. Unset: passes leave none out. */
  rests?(id: string): boolean
  /** Unset: the source has no graphs. */
  readonly graph?: SourceGraph
  /** Between two passes: does what brings jobs back, such as due times and lost leases. */
  tend(): Promise<void>
  close(): Promise<void>
}

/** Who waits for whom at the source. Records of blocked jobs have `after`. */
export interface SourceGraph {
  /** By the ids of these jobs, the blocked jobs that wait for them and are not among them. */
  childrenOf(records: readonly JobRecord[]): Promise<Map<string, string[]>>
  /** Takes blocked jobs; those that are blocked no more are left out. One batch per queue. */
  take(ids: readonly string[]): Promise<Batch[]>
  /** The queues of jobs, by id. Those that are not there are left out. */
  queuesOf(ids: readonly string[]): Promise<Map<string, string>>
}

/**
 * Jobs that are taken: no worker of the source starts them until `renewAt` and a while longer. If the move is killed, they come back, or
 * the next move takes them up. In the end each one is removed or put back.
 *
 * Another move of the same source may have taken up a job meanwhile, and stored it. So no job is put back to where a worker of the source
 * can start it before that other move has removed it.
 */
export interface Batch {
  readonly records: readonly JobRecord[]
  /** `performance.now()` from which they must be renewed before the target stores them; Infinity: never. */
  readonly renewAt: number
  /** By id, why the source refuses to give a job: nobody took it, or the target has it as well. Unset: it refuses none. */
  readonly refused?: ReadonlyMap<string, MillpondError>
  /** Takes them anew; `records` are those that are still taken. */
  renew(): Promise<void>
  /** The target has them. */
  remove(records: readonly JobRecord[]): Promise<void>
  /** The target does not take them. @param rests passes leave them out for a while, so that workers of the source can have them */
  putBack(records: readonly JobRecord[], rests: boolean): Promise<void>
  /** The move ends with an error, and has not sent them to the target. Those that no other move can have taken up go back at once. */
  abandon(): Promise<void>
}

/**
 * Makes a shared call of a batch; a job that the source refuses keeps no other.
 * @param refused gets these jobs @returns an answer per item; null: it was refused
 */
export async function parted<Item extends { id: string }, Answer>(
  items: readonly Item[],
  call: (items: readonly Item[]) => Promise<readonly Answer[]>,
  refused: Map<string, MillpondError>,
): Promise<(Answer | null)[]> {
  if (items.length === 0) return []
  const answers = await splitting(items, call, 'taking jobs from the source')
  return answers.map((answer, index) => {
    if (!(answer instanceof Error)) return answer
    if (!isRefusal(answer)) throw answer
    refused.set(items[index]?.id ?? '', answer)
    return null
  })
}

/** Opens a rival's data. @param onTrouble is told of each failure that is repeated @param stop ends the repeating */
export type OpenRival = (url: string, onTrouble: (error: MillpondError) => void, stop: AbortSignal) => Promise<Source>
