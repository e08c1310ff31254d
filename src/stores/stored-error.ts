/** The error of a job's last failed attempt, from what a store keeps of it. */
import type { JobError } from '../values/jobs/records.ts'

type Parts = { readonly [Part in keyof JobError]?: unknown }

/** An error that cannot be read does not hide its job: then it says so itself. */
export function storedError({ code, name, message, stack }: Parts): JobError {
  if (typeof code === 'string' && typeof name === 'string' && typeof message === 'string') {
    // Other programs may have stored half of a surrogate pair, which would spoil answers in which the error stands beside others.
    const told = { code: code.toWellFormed(), name: name.toWellFormed(), message: message.toWellFormed() }
    return { ...told, ...(typeof stack === 'string' ? { stack: stack.toWellFormed() } : {}) }
  }
  const advice = 'The error kept with the job cannot be read.'
  return { code: 'PayloadNotDecodable', name: 'MillpondError', message: advice }
}

/** From the JSON that the SQL stores keep. */
export function storedErrorFromJson(json: unknown): JobError {
  try {
    return storedError(JSON.parse(String(json)))
  } catch {
    return storedError({})
  }
}
