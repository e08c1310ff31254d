/** Jobs for calls of the store’s interface. */
import type { NewJob } from '../../src/store.ts'
import { newId } from '../../src/values/ids.ts'

/** One job for each group named. */
export function newJobs(queue: string, groups: readonly string[]): NewJob[] {
  return groups.map((group) => ({
    ...{ id: newId(), queue, group, data: { encoding: 'json', body: 'null' }, fresh: true },
    ...{ priority: 4, delay: 0, runAt: null, key: null, attempts: null, timeout: null, trace: null },
  }))
}
