/** One insert for many names: those that come while an insert is under way go together in the next one. */
import { Gather } from '../../src/gather.ts'
import { Users } from './users.ts'

const LIMITS = { items: 500, bytes: 1_048_576 }

/**
 * @param within how long a name may be held back for others to join it, in ms; 0: not at all
 * @returns an insert of one name, settled with its row's id
 */
export function groupedInserts(url: string, within = 0): (name: string) => Promise<number> {
  const users = new Users(url)
  const gather = new Gather((names: string[]) => users.insertMany(names), LIMITS)
  const insert = (name: string) => gather.add(name, name.length)
  if (within === 0) return insert
  let held: (() => void)[] = []
  let timer: NodeJS.Timeout | undefined
  const release = () => {
    clearTimeout(timer)
    timer = undefined
    const all = held
    held = []
    for (const go of all) go()
  }
  return async (name) => {
    await new Promise<void>((resolve) => {
      held.push(resolve)
      if (held.length === LIMITS.items) release()
      else timer ??= setTimeout(release, within)
    })
    return insert(name)
  }
}
