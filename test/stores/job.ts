/** A job for the tests of single stores. */
import type { NewJob } from '../../src/values/jobs/records.ts'
import { newJob } from '../support/jobs.ts'

export const job = (fields: Partial<NewJob> = {}): NewJob =>
  newJob({ queue: 'emails', data: { encoding: 'json', body: '{"to":"a@example.org"}' }, ...fields })
