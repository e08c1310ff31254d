/** Memory, SQLite and Redis as several processes have them. */

import { newJob } from '../../support/jobs.ts'
import { PLACES, type Processes } from '../processes.ts'
import { WholeArena } from './arena.ts'

/** One for each session, and one for the process that sleeps. */
const PROCESSES = 4
/** Ms for which Redis keeps it in mind that somebody sleeps. */
const REDIS_FORGETS = 5000

async function open(name: string): Promise<Processes> {
  const place = PLACES.find((each) => each.name === name)
  if (place === undefined) throw new Error(`${name} is no place`)
  return place.open(PROCESSES)
}

export const memory = async (): Promise<WholeArena> => new WholeArena(await open('memory'))

export async function sqlite(): Promise<WholeArena> {
  const processes = await open('sqlite')
  const [first] = processes.stores
  return new WholeArena({ ...processes, mark: async (queue) => first?.operations.push({ jobs: [newJob({ queue })] }) })
}

export async function redis(): Promise<WholeArena> {
  const processes = await open('redis')
  const [first] = processes.stores
  return new WholeArena({
    ...processes,
    forgets: REDIS_FORGETS,
    mark: async (queue) => first?.operations.configure({ queue, paused: false }),
  })
}
