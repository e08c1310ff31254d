/** A job for the tests of single stores. */
import type { NewJob } from '../../src/store.ts'

let count = 0

export function job(fields: Partial<NewJob> = {}): NewJob {
  return {
    id: `00000000-0000-7000-8000-${String(++count).padStart(12, '0')}`,
    queue: 'emails',
    priority: 4,
    delay: 0,
    runAt: null,
    key: null,
    group: null,
    attempts: 3,
    timeout: null,
    trace: null,
    data: { encoding: 'json', body: '{"to":"a@example.org"}' },
    ...fields,
  }
}
