/** The steps of a job, as its journal tells of them. */

import { decode } from '../encoding/encoding.ts'
import { LAST_MOMENT } from '../time/duration.ts'
import type { Entry, JobError } from './records.ts'
import { signalName, stepKey } from './step-names.ts'

/** One step of a job, or a signal that it was sent. */
export interface StepInfo {
  /** With `#2` and so on, where the handler uses a name again; of a signal: its name. */
  name: string
  /** `unknown`: another program has written it. */
  kind: 'step' | 'sleep' | 'wait' | 'run' | 'signal' | 'unknown'
  /** `waiting`: a sleep, a wait or a child whose end is not kept, or a step that is to be tried again. */
  state: 'done' | 'failed' | 'waiting'
  /** As stored; of a signal: its data. undefined where there is none. */
  result: unknown
  /** Without a stack. */
  error: JobError | null
  /** When it was kept, by the store's clock as the worker knows it; null: not known. */
  at: Date | null
  /** Milliseconds for which a step ran; null for all else. */
  took: number | null
  /** Which attempt of the job kept it; null: not known. */
  attempt: number | null
  /** Until when it sleeps, waits, or is not tried again; null: there is no such time. */
  until: Date | null
  /** The id of the child of a `run`; null for all else. */
  child: string | null
  /** The question of a wait; undefined: it has none. */
  ask?: string
}

interface Meta {
  kind?: unknown
  at?: unknown
  took?: unknown
  attempt?: unknown
  until?: unknown
  child?: unknown
  failed?: unknown
}

/** In the order in which they began. Never throws because of what the journal holds. */
export function stepInfos(entries: readonly Entry[]): StepInfo[] {
  const steps = new Map<string, StepInfo>()
  for (const entry of entries) {
    const signal = signalName(entry.name)
    const name = signal ?? stepKey(entry.name)
    const info = infoOf(name, entry, signal !== undefined)
    const key = signal === undefined ? name : entry.name
    const before = steps.get(key)
    // What ended a wait or a child stands where that began.
    steps.set(key, before === undefined ? info : { ...before, ...info, ...(before.ask && { ask: before.ask }) })
  }
  return [...steps.values()]
}

function infoOf(name: string, entry: Entry, isSignal: boolean): StepInfo {
  const meta = metaOf(entry)
  const isOver = entry.name.startsWith('+') && !entry.name.includes('\n')
  const kind = isSignal ? 'signal' : kindOf(meta.kind)
  const isDone = kind === 'step' ? entry.name.startsWith('=') : isOver || isSignal
  const value = bodyOf(entry)
  const begins = kind === 'wait' && !isOver
  return {
    ...{ name, kind },
    state: meta.failed === true ? 'failed' : isDone ? 'done' : 'waiting',
    result: meta.failed === true || begins ? undefined : value,
    error: meta.failed === true ? errorOf(value) : null,
    at: dateOf(meta.at),
    took: typeof meta.took === 'number' ? meta.took : null,
    attempt: typeof meta.attempt === 'number' ? meta.attempt : null,
    until: dateOf(meta.until),
    child: typeof meta.child === 'string' ? meta.child : null,
    ...(begins && isAsking(value) && { ask: value.ask }),
  }
}

const kindOf = (kind: unknown): StepInfo['kind'] =>
  kind === 'step' || kind === 'sleep' || kind === 'wait' || kind === 'run' ? kind : 'unknown'

const isAsking = (value: unknown): value is { ask: string } =>
  typeof value === 'object' && value !== null && 'ask' in value && typeof value.ask === 'string'

function metaOf({ meta }: Entry): Meta {
  try {
    const parsed: unknown = JSON.parse(meta)
    return typeof parsed === 'object' && parsed !== null ? parsed : {}
  } catch {
    return {}
  }
}

function bodyOf({ body }: Entry): unknown {
  if (body === null) return undefined
  try {
    return decode(body, 'the result of a step')
  } catch {
    return undefined
  }
}

function errorOf(value: unknown): JobError {
  const { code = 'HandlerFailed', name = 'Error', message = '' } = (value ?? {}) as Partial<JobError>
  return { code: String(code), name: String(name), message: String(message) }
}

const dateOf = (ms: unknown): Date | null =>
  typeof ms === 'number' && Math.abs(ms) <= LAST_MOMENT ? new Date(ms) : null

/** What a parked job waits for. */
export interface StepWait {
  kind: StepInfo['kind']
  name: string
  /** null: no time ends it. */
  until: Date | null
  /** The id of the child that has to end; null: none. */
  child: string | null
}

/** @param reason as a park has it: contract/steps.md. Never throws */
export function waitsFrom(reason: string): StepWait[] {
  const { waits } = metaOf({ n: 0, name: '', meta: reason, body: null }) as { waits?: unknown }
  if (!Array.isArray(waits)) return []
  return waits.map((wait: Meta & { name?: unknown }) => ({
    kind: kindOf(wait?.kind),
    name: String(wait?.name ?? ''),
    until: dateOf(wait?.until),
    child: typeof wait?.child === 'string' ? wait.child : null,
  }))
}
