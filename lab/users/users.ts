/** The table, and the ways to fill it. */
import pg from 'pg'

/** Connections of whoever inserts. */
const CONNECTIONS = 10

export const TABLE = 'create table users (id serial primary key, name text not null)'

export class Users {
  readonly #pool: pg.Pool

  constructor(url: string, connections = CONNECTIONS) {
    this.#pool = new pg.Pool({ connectionString: url, max: connections })
    this.#pool.on('error', console.error)
  }

  async create(): Promise<void> {
    await this.#pool.query(TABLE)
  }

  /** @returns undefined: there is no such row */
  async nameOf(id: number): Promise<string | undefined> {
    const { rows } = await this.#pool.query<{ name: string }>('select name from users where id = $1', [id])
    return rows[0]?.name
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  /** @returns the row's id */
  async insert(name: string): Promise<number> {
    const { rows } = await this.#pool.query<{ id: number }>({
      name: 'one',
      text: 'insert into users (name) values ($1) returning id',
      values: [name],
    })
    return rows[0]?.id ?? Number.NaN
  }

  /** Many names in one statement. @returns the rows' ids, in the names' order */
  async insertMany(names: readonly string[]): Promise<number[]> {
    const { rows } = await this.#pool.query<{ id: number }>({
      name: 'many',
      text: 'insert into users (name) select name from unnest($1::text[]) with ordinality as u (name, n) order by n returning id',
      values: [names],
    })
    return rows.map(({ id }) => id)
  }

  /** The same for whoever does not ask for the ids. */
  async addMany(names: readonly string[]): Promise<void> {
    await this.#pool.query({
      name: 'add',
      text: 'insert into users (name) select unnest($1::text[])',
      values: [names],
    })
  }
}
