/** Servers of this run alone, emptied before each task. Their durability is the same for all who are measured. */
import { type PostgresServer, startPostgres } from '../../test/servers/postgres.ts'
import { startRedis } from '../../test/servers/redis.ts'

export interface Place {
  /** What it runs with, for the report. */
  about: string
  /** @returns the URL of a place with nothing in it */
  fresh(): Promise<string>
  stop(): Promise<void>
}

/** @param fsync every write is on the disk before it is answered; else nothing is ever written to the disk, as Redis comes but for its snapshots */
export async function redisPlace(fsync: boolean): Promise<Place> {
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

export async function postgresPlace(): Promise<Place> {
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
