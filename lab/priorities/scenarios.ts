/** What goes on in the queue while urgent jobs come. */
import { PROCESSES, SLOTS } from './settings.ts'

export interface Scenario {
  title: string
  /** Long jobs that are pushed before the first urgent one. */
  longs: number
  /** For how long urgent jobs are pushed, in times of a long job. */
  lasts: number
  /** Long jobs that come meanwhile, at random moments: so many per time of a long job. */
  stream?: number
}

export const SCENARIOS = {
  idle: { title: 'one long job, the other consumers idle', longs: 1, lasts: 1 },
  full: { title: 'twice as many long jobs as consumers', longs: 2 * PROCESSES * SLOTS, lasts: 1.5 },
  mixed: { title: 'a mixed load, long jobs at random moments', longs: 0, lasts: 5, stream: 0.4 * PROCESSES * SLOTS },
} satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof SCENARIOS
