/** A helper that holds the row of a running job: calls that want several rows stop there, while others go past. */

import type pg from 'pg'
import type { World } from '../world.ts'

export class RowHolder {
  readonly #client: pg.Client
  readonly #schema: string
  readonly at = 'a held row'
  state: 'ready' | 'over' = 'over'

  constructor(client: pg.Client, schema: string) {
    this.#client = client
    this.#schema = schema
  }

  /** Takes the second of the rows that sessions may want: what comes before and after it can be locked. */
  async begin(world: World): Promise<void> {
    const id = world.newestFirst(3)[1]?.id ?? null
    await this.#client.query('begin')
    await this.#client.query(`select from ${this.#schema}.running where id = $1 for update`, [id])
    this.state = 'ready'
  }

  async settle(): Promise<void> {}

  async step(): Promise<undefined> {
    if (this.state === 'ready') await this.#client.query('rollback')
    this.state = 'over'
  }
}
