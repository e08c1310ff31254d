/** The error of a job's last failed attempt, from the JSON that the SQL stores keep. */
import type { JobError } from '../store.ts'

/** What stands for one that cannot be read: the job is to be seen all the same. */
export const UNREADABLE: JobError = {
  code: 'PayloadNotDecodable',
  name: 'MillpondError',
  message: 'The error kept with the job cannot be read.',
}

export function keptError(kept: unknown): JobError {
  const { code, name, message, stack } = partsOf(kept)
  if (typeof code !== 'string' || typeof name !== 'string' || typeof message !== 'string') return { ...UNREADABLE }
  return { code, name, message, ...(typeof stack === 'string' ? { stack } : {}) }
}

function partsOf(kept: unknown): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(String(kept))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
