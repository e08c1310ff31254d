/** The queue of reports, and what its consumer may take. */
import type { QueueOptions } from '../../../src/index.ts'

export const QUEUE = 'reports'
export const CONCURRENCY = 2
/** Of the process that runs the handler, in MB. */
export const MEMORY = 192
/** Short, so that the jobs of a consumer that died come back while we watch. */
export const SETTINGS = {
  lease: '2s',
  retry: { attempts: 3, backoff: { type: 'fixed', base: '100ms' } },
} as const satisfies QueueOptions
