/** What a handler of a test finds of its steps, and what they keep: in memory, for one run. */

import { decode, encode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Entry, NewEntry } from '../values/jobs/records.ts'
import { checkStepName } from '../values/jobs/step-names.ts'
import { checkOptions, type Rules } from '../values/options/options.ts'
import { type EntryMeta, entry, errorBody, keptError, type StepKind } from '../worker/steps/entries.ts'
import type { StepCalls } from '../worker/steps/journal-calls.ts'

/** What an earlier attempt has left. */
export interface TestStep {
  /** With `#2` and so on, if the name was used before. */
  name: string
  /** `step`, by default. A `sleep` is over; a `wait` has its signal; a `run` its child's end. */
  kind?: StepKind | undefined
  /** What the step came to; undefined by default. */
  result?: unknown
  /** With what it failed. Not together with `result`. */
  error?: Error | undefined
}

/** What a parked handler waits for. */
export interface TestWait {
  kind: StepKind
  name: string
  /** Until when; null: no time ends it. */
  until: Date | null
}

const RULES: Rules<TestStep> = {
  name: (value) => typeof value === 'string' && checkStepName(value.replace(/#\d+$/, '')) !== '',
  kind: (value) => ['step', 'sleep', 'wait', 'run'].includes(String(value)) || "'step', 'sleep', 'wait' or 'run'",
  result: () => true,
  error: (value) => value instanceof Error || 'an Error',
}

export class TestSteps {
  readonly #entries: Entry[]
  readonly #given: number

  /** @throws InvalidOption, PayloadNotEncodable, PayloadTooLarge */
  constructor(steps: readonly TestStep[], maxPayload: number) {
    this.#entries = steps.map((step, at) => ({ n: at + 1, ...entryOf(step, maxPayload) }))
    this.#given = steps.length
  }

  /** @param now the store's time */
  calls(now: () => number): StepCalls {
    const write = async (entries: readonly NewEntry[]) => {
      for (const each of entries) this.#entries.push({ n: this.#entries.length + 1, ...each })
    }
    return {
      write,
      begin: refuse,
      read: async () => ({ entries: [...this.#entries], now }),
      find: async () => null,
    }
  }

  /** What the run has kept: the results of its steps, by their names, as they are stored. */
  get kept(): Record<string, unknown> {
    const added = this.#entries.slice(this.#given).filter(({ name, body }) => !name.includes('\n') && body !== null)
    return Object.fromEntries(added.map(({ name, body }) => [name.slice(1), body && decode(body, 'a step')]))
  }
}

function refuse(): never {
  throw new MillpondError('NotSupported', 'a step with a transaction needs a pond over SQLite or PostgreSQL')
}

function entryOf(given: TestStep, maxPayload: number): NewEntry {
  const { name, kind = 'step', result, error } = checkOptions(given, RULES, 'a step of a test', ['name'])
  if (result !== undefined && error !== undefined) {
    throw new MillpondError('InvalidOption', `a step of a test: give ${name} a result or an error, not both`)
  }
  const meta: EntryMeta = {
    kind,
    attempt: 1,
    at: 0,
    ...(kind === 'sleep' && { until: 0 }),
    ...(error && { failed: true }),
  }
  const value = result === undefined ? null : encode(result, 'the result of a step', maxPayload)
  const prefix = kind === 'wait' || kind === 'run' ? '+' : '='
  return entry(`${prefix}${name}`, meta, error === undefined ? value : errorBody(keptError(error)))
}

/** @param reason as of a park */
export function waitsOf(reason: string): TestWait[] {
  const { waits }: { waits: { kind: StepKind; name: string; until: number | null }[] } = JSON.parse(reason)
  return waits.map(({ kind, name, until }) => ({ kind, name, until: until === null ? null : new Date(until) }))
}
