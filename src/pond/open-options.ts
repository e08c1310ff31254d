/**
 * The options of `Millpond.open`. A misspelt one does not compile, and one of another store than the URL's is refused at run time.
 *
 * The type does not go by the URL's scheme. An overload for each scheme, or a type parameter, would make the compiler look at the options
 * before it knows what `open` returns. Then a program could not close its server, which uses the pond, by `signals: { before }`: TS7022.
 */

import type { SealOptions } from '../values/encoding/seal.ts'
import type { PondCloseOptions } from '../values/options/close-options.ts'

/** The options of every store. */
export interface CommonOptions {
  /** Most bytes of an encoded payload, result or progress report; 1 byte to 16 MiB, 1 MiB unless set. */
  maxPayload?: number | undefined
  /**
   * Close the pond on SIGTERM and SIGINT, then end the process: with exit code 0, or 1 if closing failed. false unless
   * set. An object holds the options of `close`: `{ before: () => closeServer(server) }` closes a server first, so that
   * no request is cut.
   */
  signals?: boolean | PondCloseOptions | undefined
  /** Keys that seal every payload, result, progress report and error text before the store gets it; see docs/seal.md. */
  seal?: SealOptions | undefined
  /** @internal Replaces the store's clock in tests: milliseconds since 1970. */
  clock?: (() => number) | undefined
}

/** Of `memory:`. See docs/spill.md. */
export interface MemoryOptions {
  /** A durable store for what does not fit: its URL, or an object with `url` and the options of that store. */
  spill?: string | URL | SpillOptions | undefined
}

export type SpillOptions = { url: string | URL } & Omit<CommonOptions, 'maxPayload' | 'signals' | 'seal'> &
  (SqliteOptions | RedisOptions | PostgresOptions)

/** Of `sqlite:PATH`. See docs/sqlite.md. */
export interface SqliteOptions {
  /** `full`, unless set: an acknowledged push is on the disk. `normal`: a power cut may cost the last ones. */
  sync?: 'full' | 'normal' | undefined
  /** Milliseconds to wait for another connection's lock; 5,000 unless set. */
  busyTimeout?: number | undefined
  /** Milliseconds that a handler's transaction may be open; 10,000 unless set. */
  transactionTimeout?: number | undefined
  /** The class `Database` of better-sqlite3, instead of `node:sqlite`. */
  driver?: object | undefined
}

/** Of `redis:`, `rediss:`, `redis+sentinel:` and `rediss+sentinel:`. See docs/redis.md. */
export interface RedisOptions {
  /** All keys begin with it; `millpond` unless set. */
  prefix?: string | undefined
  /** How many replicas must have what a call has written before it is acknowledged; 0 to 100, 0 unless set. */
  wait?: number | undefined
  /** Milliseconds until a call without an answer rejects; 100 to 600,000, 5,000 unless set. */
  timeout?: number | undefined
  /** So many stores, with the prefixes `PREFIX.0` and on, of which each has some of the queues: docs/shards.md; 1 unless set. */
  shards?: number | undefined
  /** The one host of the URL is a node of a cluster. */
  cluster?: boolean | undefined
  /** The database's number. */
  db?: number | undefined
  /** The login of the sentinels. */
  sentinelUsername?: string | undefined
  sentinelPassword?: string | undefined
  /** A `Redis` or `Cluster` of ioredis, with whose options the store makes its connections. It stays yours to close. */
  client?: object | undefined
}

/** Of `postgres:` and `postgresql:`. See docs/postgres.md. */
export interface PostgresOptions {
  /** `millpond` unless set. */
  schema?: string | undefined
  /** Most connections; 3 to 10, 5 unless set. */
  connections?: number | undefined
  /** Whether to use LISTEN; `auto`, unless set: unless a pooler stands between. */
  listen?: 'auto' | 'on' | 'off' | undefined
  /** Milliseconds between looks, where the store does not listen; 5 to 1,000, 100 unless set. */
  poll?: number | undefined
  /** The connection goes through a pooler. */
  pgbouncer?: boolean | undefined
  /** Milliseconds after which a call without an answer rejects; 100 to 600,000, 20,000 unless set. */
  timeout?: number | undefined
  /** An open postgres.js `sql`, or a `pg` Pool. It stays yours to close. */
  client?: object | undefined
}

/** Of `amqp:` and `amqps:`. See docs/rabbitmq.md. */
export interface RabbitmqOptions {
  /** Begins the names of all queues and exchanges; `millpond` unless set. */
  prefix?: string | undefined
  /** 1: queues of other programs that bear the name of a Millpond queue are worked off as well. 0 unless set. */
  foreign?: 0 | 1 | undefined
  /** Milliseconds until a call without an answer rejects; 100 to 600,000, 5,000 unless set. */
  timeout?: number | undefined
  /** Seconds between signs of life; 1 to 600, 15 unless set. */
  heartbeat?: number | undefined
}

/** The options of `Millpond.open`: those of every store, and those of the one that the URL names. */
export type OpenOptions = CommonOptions &
  (MemoryOptions | SqliteOptions | RedisOptions | PostgresOptions | RabbitmqOptions)
