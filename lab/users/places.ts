/** The stores of a run of E1, each with nothing in it. */
import { HERE } from '../checkout.ts'
import type { Stage } from '../experiment.ts'
import type { Places } from './service.ts'

/** @param fsync Redis has each write on the disk before it answers */
export async function placesOf(stage: Stage, fsync: boolean): Promise<(followed?: boolean) => Promise<Places>> {
  const redis = await stage.place(fsync ? 'redis-fsync' : 'redis')
  const [postgres, sqlite] = [await stage.place('postgres'), await stage.place('sqlite')]
  return async (followed = false) => ({
    redis: await redis.fresh(),
    postgres: await postgres.fresh(),
    sqlite: await sqlite.fresh(),
    followed,
    checkout: HERE,
  })
}
