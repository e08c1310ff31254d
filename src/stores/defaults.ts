import type { QueueSettings } from '../store.ts'
import { DEFAULT_BACKOFF } from '../values/backoff.ts'

const HOUR = 3_600_000

/** The settings of a queue that were never set. */
export const DEFAULTS: Readonly<Required<Omit<QueueSettings, 'queue' | 'grouped'>>> = {
  capacity: null,
  keepDone: HOUR,
  keepDead: 7 * 24 * HOUR,
  paused: false,
  attempts: 10,
  backoff: DEFAULT_BACKOFF,
  lease: 30_000,
  timeout: null,
  running: null,
  rate: null,
  groupRunning: null,
  groupRate: null,
}
