/** An insert of its own for each request, before the answer. */
import type { Serve } from '../service.ts'
import { Users } from '../users.ts'

export const serve: Serve = async ({ postgres }) => {
  const users = new Users(postgres)
  return { accept: (name) => users.insert(name) }
}
