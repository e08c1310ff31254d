/** What the dashboard's page and its server say to each other, as JSON. Times are milliseconds since 1970, by the store's clock. */
import type { Explanation } from '../pond/explain.ts'
import type { QueueSetting } from '../pond/queue-options.ts'
import type { QueueReport } from '../pond/stats.ts'
import type { Capabilities } from '../store.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import type { JobState } from '../values/jobs/records.ts'
import type { DataFilter, Lane } from '../values/operations/requests.ts'
import type { GroupRecord } from '../values/settings/limits.ts'

/** What the caller may do with a queue. */
export interface May {
  /** Change jobs and settings. */
  operate: boolean
  /** See data, progress, results, logs and the messages of errors. */
  payloads: boolean
}

/** Something that a person should look at. */
export interface Attention {
  queue: string
  kind: 'alert' | 'noWorker' | 'silent' | 'full' | 'dead' | 'paused' | 'limit' | 'groups' | 'slots' | 'lost' | 'late'
  level: 'alarm' | 'warning'
  text: string
}

/**
 * Of a queue at one time: [time, jobs that wait, arrivals, completions and failures a second, p95 of the wait]; null: not
 * known.
 */
export type Point = readonly [number, number, number | null, number | null, number | null, number | null]

export interface QueueView {
  name: string
  may: May
  paused: boolean
  capacity: number | null
  counts: Record<JobState, number>
  /** A second, over the last half a minute; null: not known yet. */
  arrivals: number | null
  completions: number | null
  failures: number | null
  /** Milliseconds, over the last five minutes. */
  wait: { p50: number | null; p95: number | null; p99: number | null }
  oldest: number | null
  /** Of these and their slots, those that are not silent. */
  workers: number
  slots: number
  busy: number
  /** Those of the slots that are kept for urgent jobs, the highest priority first. */
  lanes: readonly Lane[] | null
  /** Workers that missed two heartbeats, in words. */
  silent: string | null
  /** Workers that are needed, by `plan`; null: nothing was measured. */
  needed: number | null
  /** Milliseconds until no job waits, as it goes now; null: it does not shrink, or nothing is known. */
  drain: number | null
  overridden: boolean
}

export interface StoreView {
  name: string
  kind: string
  capabilities: Capabilities
  queues: QueueView[]
  /** There are further queues, which are not listed. */
  more: boolean
  attention: Attention[]
  /** Milliseconds until the store is asked again. */
  pace: number
  /** Why the store could not be asked; unset: it could. */
  trouble?: string
}

/** An event of the stream. */
export interface Tick {
  at: number
  who: string
  /** The caller has signed in here, and may sign out. */
  isSession: boolean
  stores: StoreView[]
  /** Of the first event: what is known from before. Then the newest alone. By store and queue. */
  points: Record<string, Record<string, Point[]>>
}

/**
 * A value of a payload, so that nothing is lost on the way: null, true and so on stand for themselves.
 *   ['a', items, left] array   ['o', [key, value][], left] object   ['i', digits] big integer   ['n', text] NaN and infinities
 *   ['b', base64, bytes] bytes   ['s', start, length] a long text that is cut   ['d', ISO text] date   ['x'] redacted   ['u'] undefined
 * `left`: how many entries are not shown.
 */
export type Shown =
  | null
  | boolean
  | number
  | string
  | readonly ['a', readonly Shown[], number]
  | readonly ['o', readonly (readonly [string, Shown])[], number]
  | readonly ['i' | 'n' | 'd', string]
  | readonly ['b' | 's', string, number]
  | readonly ['x' | 'u']

/** A payload. `locked`: the caller may not see it. `sealed`: its key is not here. */
export type PayloadView =
  | { state: 'none' | 'locked' }
  | { state: 'sealed' | 'undecodable'; bytes: number; encoding: string }
  | { state: 'shown'; bytes: number; encoding: string; value: Shown; redacted: boolean; cut: boolean }

export interface ErrorView {
  code: string
  name: string
  /** null: the caller may not see it. */
  message: string | null
  stack: string | null
}

export interface JobRow {
  id: string
  state: JobState
  priority: number
  attempt: number
  attempts: number
  key: string | null
  group: string | null
  pushedAt: number
  dueAt: number
  startedAt: number | null
  finishedAt: number | null
  worker: string | null
  error: ErrorView | null
}

export interface LineView {
  at: number | null
  attempt: number | null
  message: string
  fields: Shown | null
  cut: boolean
}

export interface RelativeView {
  id: string
  queue: string
  state: JobState
}

/** The first of some jobs. Those of queues that the caller may not see are counted alone. */
export interface RelativesSide {
  shown: RelativeView[]
  count: number
}

/** The jobs that a job waits or waited for, and those that wait or waited for it. */
export interface RelativesView {
  parents: RelativesSide
  children: RelativesSide
  /** There are more than were counted. */
  more: boolean
}

export interface JobPage extends JobRow {
  queue: string
  may: May
  cost: number
  timeout: number | null
  trace: string | null
  data: PayloadView
  progress: PayloadView
  result: PayloadView
  /** null: the caller may not see it. */
  log: LineView[] | null
  /** null: the job has none, or the store knows of none. */
  relatives: RelativesView | null
  /** null: the store cannot tell. */
  why: Explanation['text'] | null
}

export interface JobsPage {
  jobs: JobRow[]
  /** Where the next page begins; null: there is none. */
  next: string | null
  /** The search was stopped after its time, so that the page may be short or empty. */
  isPart: boolean
  /** Places in the data of the first ones, such as `user.id`; none, where the caller may not see data. */
  places: string[]
  may: May
}

/** How many jobs a search finds. `more`: at least `count`. `estimate`: `looked` of the `total` of the state were looked at. */
export interface CountView {
  kind: 'exact' | 'more' | 'estimate'
  count: number
  looked: number
  total: number
}

export interface QueuePage {
  may: May
  report: QueueReport
  settings: QueueSetting[]
  groups: GroupRecord[] | null
}

export interface WorkerRow {
  id: string
  queue: string
  host: string
  pid: number
  slots: number
  busy: number
  lanes: readonly Lane[] | null
  since: number
  seen: number
  /** Milliseconds since then, when the store was asked. */
  silence: number
  /** It missed two heartbeats. */
  silent: boolean
  /** Jobs that it runs now, of the first ones looked at. */
  jobs: { id: string; startedAt: number | null }[]
}

/** A rule of alerts, with the queues where it is not quiet. */
export interface AlertRow {
  name: string
  /** null: every queue. */
  queue: string | null
  metric: string
  above: number
  /** Milliseconds. */
  for: number
  resolveAfter: number
  /** `since` and `above`: since when it is in this phase, and since when the value has been above. */
  states: { queue: string; phase: string; since: number; above: number }[]
}

/** Somebody was told, or is to be. */
export interface DeliveryRow {
  id: string
  rule: string
  queue: string
  turn: 'firing' | 'resolved'
  state: JobState
  /** null: not yet. */
  at: number | null
  attempt: number
  /** Of its last error. */
  code: string | null
}

export interface AlertsPage {
  /** null: no program has rules. */
  rules: AlertRow[] | null
  told: DeliveryRow[]
}

/** What somebody did. */
export interface ActionRow extends ActionEvent {
  at: number
}

export interface ActionsPage {
  /** null: the store keeps none. */
  actions: ActionRow[] | null
  next: string | null
  /** The search was stopped after its time. */
  isPart: boolean
}

export interface ScheduleRow {
  name: string
  may: May
  when: string
  tz: string
  words: string
  queue: string
  paused: boolean
  /** Whether a program has declared it lately. */
  declared: boolean
  nextAt: number | null
  lastAt: number | null
  /** The next ones, as this machine computes them. */
  times: number[]
}

/** A past time of a schedule. */
export interface FiringRow {
  at: number
  id: string
  /** Of its job; null: there is none, or no longer. */
  state: JobState | null
}

export interface SchedulePage extends ScheduleRow {
  missed: string
  jitter: number
  /** With a key, a live job may have stood for one of its times. */
  hasKey: boolean
  data: PayloadView
  /** Newest first. */
  history: FiringRow[]
}

/** What a bulk change would do. */
export interface BulkPreviewView {
  count: number
  isEstimate: boolean
  sample: JobRow[]
  /** Where a run begins that takes only jobs that were there now. */
  from: string
}

interface BulkProgress {
  /** How many jobs were looked at, of how many about. */
  looked: number
  total: number
  changed: number
}

/** A line of the answer of a bulk change. */
export type BulkLine =
  | ({ kind: 'progress' } & BulkProgress)
  | ({ kind: 'done' } & BulkProgress)
  | ({ kind: 'failed'; message: string } & BulkProgress)

export type BulkAction = 'requeue' | 'cancel' | 'remove' | 'promote'

/** Which jobs a list or a bulk change is about. */
export interface Search {
  state: JobState
  group?: string | undefined
  key?: string | undefined
  errorCode?: string | undefined
  errorText?: string | undefined
  pushedFrom?: number | undefined
  pushedBefore?: number | undefined
  text?: string | undefined
  data?: DataFilter | undefined
}

/** What a bulk change is asked for with. */
export interface BulkBody {
  queue: string
  action: BulkAction
  search: Search
  /** Only tells what would be changed. */
  preview?: boolean
  /** Of the preview. */
  from?: string
}
