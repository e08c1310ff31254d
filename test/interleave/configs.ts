/** The limits that a queue begins with. */

import type { QueueSettings } from '../../src/values/settings/settings.ts'

export interface Config {
  name: string
  /** 0 unless set. */
  keepDone?: number
  limits: Pick<QueueSettings, 'running' | 'rate' | 'grouped' | 'groupRunning' | 'groupRate'>
}

export const CONFIGS: readonly Config[] = [
  { name: 'no limits', limits: {} },
  { name: 'no limits, done jobs are kept', keepDone: 3_600_000, limits: {} },
  { name: 'groups', limits: { grouped: true } },
  { name: 'group running 1', limits: { groupRunning: 1 } },
  { name: 'group running 2', limits: { groupRunning: 2 } },
  { name: 'running 1', limits: { running: 1 } },
  { name: 'running 2, group running 1', limits: { running: 2, groupRunning: 1 } },
  { name: 'group rate', limits: { groupRate: { count: 1, per: 1000, burst: 1 } } },
  { name: 'rate', limits: { rate: { count: 1, per: 1000, burst: 1 } } },
]
