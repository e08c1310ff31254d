/**
 * No queue: concurrent requests share one multi-row insert, before the answer. Requests that come while an insert is under way go together
 * in the next one.
 */
import { batch } from '../../../src/index.ts'
import type { Serve } from '../service.ts'
import { Users } from '../users.ts'

export const serve: Serve = async ({ postgres }) => {
  const users = new Users(postgres)
  return { accept: batch((names: string[]) => users.insertMany(names)) }
}
