import type { JobRecord } from '../../src/values/jobs/records.ts'
import type { JobFilter } from '../../src/values/operations/requests.ts'

/** Whether the filter lets the job through. */
export function passes({ group, key, error, data }: JobRecord, filter: JobFilter): boolean {
  const hasText = filter.text === undefined || (data.encoding === 'json' && String(data.body).includes(filter.text))
  return (
    hasText &&
    (filter.group === undefined || (group ?? '') === filter.group) &&
    (filter.key === undefined || key === filter.key) &&
    (filter.errorCode === undefined || error?.code === filter.errorCode)
  )
}
