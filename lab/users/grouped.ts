/** One insert for many names: those that come while an insert is under way go together in the next one. */
import { type Batched, batch } from '../../src/index.ts'
import { Users } from './users.ts'

/** Settled with the row's id. */
export function groupedInserts(url: string): Batched<string, number> {
  const users = new Users(url)
  return batch((names: string[]) => users.insertMany(names))
}

/**
 * The same for a consumer, whom nobody asks for the ids, and who has time.
 * @param within how long a name may be held back for others to join it, in ms
 */
export function patientInserts(url: string, within: number): Batched<string, undefined> {
  const users = new Users(url)
  return batch(
    async (names: string[]) => {
      await users.addMany(names)
      return names.map(() => undefined)
    },
    { within },
  )
}
