/** Stores of this run alone, emptied before each measurement. Their durability is the same for all who are measured. */
import { rmSync } from 'node:fs'
import { type PostgresServer, startPostgres } from '../test/servers/postgres.ts'
import { startRedis } from '../test/servers/redis.ts'
import { freshFolder } from './data.ts'

export interface Place {
  /** What it runs with, for the report. */
  about: string
  /** @returns the URL of a place with nothing in it */
  fresh(): Promise<string>
  stop(): Promise<void>
}

const PLACES = {
  memory: async () => ({ about: 'memory', fresh: async () => 'memory:', stop: async () => {} }),
  sqlite: () => sqlitePlace('full'),
  'sqlite-normal': () => sqlitePlace('normal'),
  /** Nothing is ever written to the disk, as Redis comes but for its snapshots. */
  redis: () => redisPlace(false),
  /** Every write is on the disk before it is answered. */
  'redis-fsync': () => redisPlace(true),
  postgres: () => postgresPlace(),
  rabbitmq: async () => (await import('./priorities/rabbitmq.ts')).rabbitmqPlace(),
} satisfies Record<string, () => Promise<Place>>

export type StoreName = keyof typeof PLACES

export const placeOf = (store: StoreName): Promise<Place> => PLACES[store]()

async function sqlitePlace(sync: 'full' | 'normal'): Promise<Place> {
  let folder: string | undefined
  const stop = async () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
  return {
    about: `SQLite, synchronous=${sync.toUpperCase()}`,
    async fresh() {
      await stop()
      folder = freshFolder()
      return `sqlite:${encodeURI(folder)}/lab.db?sync=${sync}`
    },
    stop,
  }
}

async function redisPlace(fsync: boolean): Promise<Place> {
  const server = await startRedis(fsync ? { appendonly: true, appendfsync: 'always' } : { appendonly: false })
  const version = /redis_version:(\S+)/.exec(await server.command('info', 'server'))?.[1] ?? 'unknown'
  return {
    about: `Redis ${version}, ${fsync ? 'appendonly, appendfsync always' : 'no persistence'}`,
    async fresh() {
      await server.command('flushall')
      return server.url
    },
    stop: () => server.stop(),
  }
}

const DATABASE = 'bench'

/** Segments of the log, 16 MB each, that a server keeps for later. */
const SEGMENTS = 64

/**
 * A server that has run for a while writes its log over segments that it has used before. A fresh one has none, and at each new
 * one all commits wait for 50 ms: who is measured last on it would be better off than who is first.
 */
async function runIn(server: PostgresServer): Promise<void> {
  await server.query(
    ...Array.from({ length: SEGMENTS }, () => [
      `select pg_logical_emit_message(false, 'lab', '')`,
      'select pg_switch_wal()',
    ]).flat(),
    'checkpoint',
  )
}

async function postgresPlace(): Promise<Place> {
  const server = await startPostgres({ settings: { min_wal_size: `${SEGMENTS * 16}MB` } })
  await runIn(server)
  const version = await server.query('show server_version')
  return {
    about: `PostgreSQL ${version.split(' ')[0]}, as it comes (fsync and synchronous_commit on, shared_buffers 128 MB) but for min_wal_size 1 GB, and its log run in`,
    async fresh() {
      await server.query(`drop database if exists ${DATABASE} with (force)`)
      await server.query(`create database ${DATABASE}`)
      // What the one before has written is not on the next one's time.
      await server.query('checkpoint')
      const url = new URL(server.url)
      url.pathname = DATABASE
      return url.href
    },
    stop: () => server.stop(),
  }
}
