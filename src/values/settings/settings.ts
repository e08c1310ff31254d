/** The settings of queues, as `configure` and `settings` of a store have them: contract/operations.md, "configure". */
import type { BackoffPolicy } from './backoff.ts'
import type { Rate } from './limits.ts'

/** Settings that the store keeps for a queue, for every process. Only those given are changed. */
export interface QueueSettings {
  queue: string
  /** Most blocked, scheduled and waiting jobs, at least 1; null: no limit. null unless set; memory: 100,000. */
  capacity?: number | null
  /** Milliseconds that done jobs are kept; 0: not at all. 1 hour unless set. */
  keepDone?: number
  /** Milliseconds that dead and cancelled jobs are kept; 0: not at all. 7 days unless set. */
  keepDead?: number
  /** A paused queue takes pushes and yields no claims. false unless set. */
  paused?: boolean
  /** For jobs pushed without `attempts`, at least 1; 10 unless set. */
  attempts?: number
  /** For failures with the delay `backoff`. Unless set: base 1 s, factor 2, max 1 h, jitter 0.5. */
  backoff?: BackoffPolicy
  /** Milliseconds, for claims and extensions that name no lease; 30,000 unless set. */
  lease?: number
  /** Milliseconds that an attempt may run, for jobs pushed without `timeout`; null: no limit. null unless set. */
  timeout?: number | null
  /** Most jobs of the queue that run at once, over all workers, at least 1; null: no limit. null unless set. */
  running?: number | null
  /** Starts of the queue's jobs, over all workers; null: no limit. null unless set. */
  rate?: Rate | null
  /** Groups take turns. Once true it stays so; the settings for groups and `limitGroup` make it true. false unless set. */
  grouped?: true
  /** Most jobs of each group that run at once, at least 1; null: no limit. null unless set. */
  groupRunning?: number | null
  /** Starts of each group's jobs; null: no limit. null unless set. */
  groupRate?: Rate | null
}

/**
 * The settings of which code and an operator each have their own value. `paused` and `grouped` are not among them:
 * there the last call wins.
 */
export type SettingName = Exclude<keyof QueueSettings, 'queue' | 'paused' | 'grouped'>

/** What `configure` takes. */
export interface SettingsChange extends QueueSettings {
  /** Who gives the settings; `code` unless set. An operator's are in effect until they are cleared, whatever code gives meanwhile. */
  by?: 'code' | 'operator'
  /** What an operator gives back: then the code's value is in effect, else the default. */
  clear?: readonly SettingName[]
}

/** What was given of a queue's settings, and by whom. */
export interface GivenSettings {
  code: Pick<QueueSettings, SettingName>
  operator: Pick<QueueSettings, SettingName>
}

/** Whether the settings name a queue and nothing else. Such a `configure` makes no queue. */
export const setsNothing = ({ queue: _, by: __, ...given }: SettingsChange): boolean =>
  Object.values(given).every((value) => value === undefined)
