/**
 * Read replicas: asks one whether it shows a claimed job, and reads there as long as that answer holds.
 *
 * A physical replica replays commits in the order of the primary's log, and everything that the pusher committed lies before the
 * job's row there, or in its very transaction. So a replica that shows the job shows all of it. A push that found a live job with its
 * key stored no row; whatever its pusher had committed lies before the claim. So for a job with a key the replica must show the claim.
 *
 * After a restart a replica may show an older state than it did, until it has replayed as much again. So an answer holds only while
 * no connection was lost since.
 */

import type { ReplicaQuery, StoreReplica, StoreReplicas } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { ClaimedJob } from '../../values/jobs/records.ts'
import { hasTag } from '../../values/runtime/realms.ts'
import { checkStatement } from '../statement.ts'
import { type Cells, type Database, type Row, readOnly } from './connection/database.ts'
import { Pg } from './connection/pg.ts'
import { openPool } from './connection/pool.ts'
import { openLink, PATIENCE, type ReplicaLink } from './connection/replica-link.ts'
import { isAway, isLost, isUndone, statementError, stateOf, toMillpondError } from './errors.ts'
import type { Settings } from './settings.ts'
import { plainArray, shownJobs } from './wire.ts'

/** Connections to the primary for reads that cannot go to the replica; the store's own calls must never wait for those. */
const PRIMARY = { max: 2, patience: PATIENCE }

/** Workers with the same replica share its connections. */
export function replicasOf(database: Database, settings: Settings): StoreReplicas {
  const opened = new Map<unknown, PostgresReplica>()
  return {
    open(given) {
      const key = hasTag(given, 'URL') ? String(given) : given
      const replica = opened.get(key) ?? new PostgresReplica(key, settings, database, () => opened.delete(key))
      opened.set(key, replica)
      replica.users++
      return replica
    },
  }
}

type Reads = ReplicaQuery & { primary: boolean }

class PostgresReplica implements StoreReplica {
  readonly primary: ReplicaQuery
  /** Workers that have not closed it. */
  users = 0
  readonly #schema: string
  readonly #link: ReplicaLink
  /** Where the primary is read: connections of our own, or the caller's client. */
  readonly #own: Promise<Pg> | undefined
  readonly #caller: Database
  readonly #closed: () => void
  /** What handlers get whose job is shown; another one whenever a connection was lost. */
  #query: Reads
  /** Reads under way on the replica: each is told when it is lost. */
  readonly #reading = new Set<() => void>()

  constructor(given: unknown, settings: Settings, database: Database, closed: () => void) {
    this.#schema = settings.schema
    this.#caller = database
    this.#closed = closed
    this.primary = this.#reads(true)
    this.#query = this.#reads(false)
    this.#link = openLink(given, () => this.#lost())
    if (settings.client === undefined)
      this.#own = openPool(settings, PRIMARY).then((pool) => new Pg(pool, 0, settings.timeout))
  }

  async shows(claims: readonly ClaimedJob[]): Promise<{ shown: boolean[]; query: ReplicaQuery }> {
    // If a connection is lost while the answer is under way, it holds for nothing.
    const query = this.#query
    const text = `select pg_catalog.pg_is_in_recovery(),
      (select pg_catalog.json_object_agg(j.id, j.fence) from ${this.#schema}.jobs as j where j.id = any ($1::text::uuid[]))`
    let row: Cells | undefined
    try {
      ;[row] = await this.#link.ask(text, [plainArray(claims.map(({ id }) => id))])
    } catch (error) {
      // The replica does not even show that the store was installed.
      if (['3F000', '42P01'].includes(stateOf(error))) return { shown: [], query }
      if (isLost(error)) this.#lost()
      const { code, message } = toMillpondError(error)
      throw new MillpondError(code, `the read replica cannot be asked: ${message}`, { cause: error })
    }
    if (row?.[0] !== 't') {
      throw new MillpondError('StoreUnavailable', 'the server given as replica is not a streaming replica')
    }
    return { shown: shownJobs(claims, row[1] ?? null), query }
  }

  drop(): void {
    this.#link.drop()
    this.#lost()
  }

  async close(): Promise<void> {
    if (--this.users > 0) return
    this.#closed()
    await Promise.all([this.#link.end(), this.#own?.then((own) => own.end())])
  }

  #lost(): void {
    this.#query.primary = true
    this.#query = this.#reads(false)
    for (const giveUp of [...this.#reading]) giveUp()
  }

  /** For handlers. On the primary, too, in a read-only transaction of its own, so that nothing can be written. */
  #reads(primary: boolean): Reads {
    const read = async (text: string, params: readonly unknown[] = []): Promise<Row[]> => {
      checkStatement('ctx.replica', text, params)
      try {
        const rows = query.primary ? undefined : await this.#read(text, params)
        return rows ?? (await readOnly((await this.#own) ?? this.#caller, text, params))
      } catch (error) {
        throw statementError(error)
      }
    }
    const query = Object.assign(read, { primary })
    return query
  }

  /** Rows of the replica, or undefined: it was lost before it had answered. */
  async #read(text: string, params: readonly unknown[]): Promise<Row[] | undefined> {
    const { promise: lost, resolve } = Promise.withResolvers<undefined>()
    const giveUp = () => resolve(undefined)
    this.#reading.add(giveUp)
    const rows = this.#link.read(text, params)
    rows.catch(() => {})
    try {
      return await Promise.race([lost, rows])
    } catch (error) {
      // A replica undoes reads that stand in the way of what it replays.
      if (isUndone(error)) return undefined
      if (!isAway(error)) throw error
      this.#lost()
      return undefined
    } finally {
      this.#reading.delete(giveUp)
    }
  }
}
