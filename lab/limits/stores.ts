/** The stores that are measured, each with nothing in it. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DATA } from '../bench/runner.ts'
import { type Place, postgresPlace, redisPlace } from '../rivals/place.ts'

export const STORES = ['memory', 'sqlite', 'postgres', 'redis'] as const
export type StoreName = (typeof STORES)[number]

const PLACES: Record<StoreName, (fsync: boolean) => Promise<Place>> = {
  memory: async () => ({ about: 'memory', fresh: async () => 'memory:', stop: async () => {} }),
  sqlite: async () => {
    const folder = join(DATA, `limits-${process.pid}`)
    let count = 0
    return {
      about: 'SQLite, as it comes',
      async fresh() {
        rmSync(folder, { recursive: true, force: true })
        mkdirSync(folder, { recursive: true })
        return `sqlite:${join(folder, `${count++}.db`)}`
      },
      stop: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
  postgres: () => postgresPlace(),
  redis: (fsync) => redisPlace(fsync),
}

export const placeOf = (store: StoreName, fsync: boolean): Promise<Place> => PLACES[store](fsync)
