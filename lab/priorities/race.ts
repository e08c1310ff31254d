/** Jobs about a record that was just written, whose handlers read it from a replica. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Millpond, type WorkOptions } from '../../src/index.ts'
import { type PostgresServer, startPostgres } from '../../test/servers/postgres.ts'
import { caughtUp, setApplyDelay, startReplica } from '../../test/servers/postgres-replica.ts'
import { mean } from '../statistics.ts'

const SLOTS = 20
/** Between two records, in ms. */
const GAP = 2
const POLL = 20

interface Report {
  record: number
}

export interface Race {
  jobs: number
  /** Handlers that did not find their record. */
  missed: number
  /** From the commit of the record to the start of its handler, in ms. */
  wait: number
}

/** A primary and its replica. */
export class Pair {
  readonly #primary: PostgresServer
  readonly #replica: PostgresServer

  private constructor(primary: PostgresServer, replica: PostgresServer) {
    this.#primary = primary
    this.#replica = replica
  }

  static async start(): Promise<Pair> {
    const primary = await startPostgres()
    return new Pair(primary, await startReplica(primary))
  }

  async stop(): Promise<void> {
    await this.#replica.stop()
    await this.#primary.stop()
  }

  /** @param lag by which the replica shows each commit late, in ms @param aware with the option `replica` */
  async race(jobs: number, lag: number, aware: boolean): Promise<Race> {
    await this.#primary.query('drop schema if exists millpond cascade', 'drop table if exists records')
    await this.#primary.query('create table records (id int primary key)')
    await setApplyDelay(this.#replica, lag)
    const pond = await Millpond.open(this.#primary.url)
    const [primary, replica] = [this.#primary, this.#replica].map(({ url }) => new pg.Pool({ connectionString: url }))
    if (primary === undefined || replica === undefined) throw new Error('two servers, two pools')
    const reports = pond.queue<Report>('reports')
    await caughtUp(this.#primary, this.#replica)
    const committed: number[] = []
    const waits: number[] = []
    let missed = 0
    const text = 'select id from records where id = $1'
    const options: WorkOptions = { concurrency: SLOTS }
    const found = (record: number, rows: readonly unknown[]) => {
      if (rows.length === 0) missed++
      waits.push(performance.now() - (committed[record] ?? Number.NaN))
    }
    if (aware) {
      reports.work(async ({ data }, ctx) => found(data.record, await ctx.replica(text, [data.record])), {
        ...options,
        replica: this.#replica.url,
      })
    } else {
      reports.work(async ({ data }) => found(data.record, (await replica.query(text, [data.record])).rows), options)
    }
    try {
      for (let record = 0; record < jobs; record++) {
        await write(primary, (client) => reports.push({ record }, { tx: client }), record)
        committed[record] = performance.now()
        await sleep(GAP)
      }
      while (waits.length < jobs) await sleep(POLL)
      return { jobs, missed, wait: mean(waits.filter(Number.isFinite)) }
    } finally {
      await pond.close()
      await Promise.all([primary.end(), replica.end()])
    }
  }
}

/** The record and its job are committed together. */
async function write(pool: pg.Pool, push: (client: pg.PoolClient) => Promise<unknown>, record: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('insert into records (id) values ($1)', [record])
    await push(client)
    await client.query('commit')
  } finally {
    client.release()
  }
}
