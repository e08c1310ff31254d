/** From the store's URL and options to how its connections are made. */

import type { StoreOptions } from '../../store.ts'
import { shown } from '../../values/time/duration.ts'
import { checkNames, invalid, optionIn, wholeNumber } from '../options.ts'
import { credential, serverUrls } from '../url.ts'

export interface Settings {
  /** For the client, one per server: without our own options. */
  urls: readonly string[]
  /** Servers that take no writes are passed over. */
  writable: boolean
  schema: string
  /** Most connections, the one that listens included. */
  connections: number
  /** `auto`: unless a pooler stands between. */
  listen: 'auto' | 'on' | 'off'
  /** Where it does not listen: ms between looks for what happened. */
  poll: number
  /** Ms that a call may go without an answer; then it rejects, and our own connection is closed. */
  timeout: number
  /** Ms after which the server gives up a call. Less than `timeout`: otherwise a claim that we gave up could still take jobs. */
  deadline: number
  /** An open client of the caller's: a postgres.js `sql`, or a `pg` Pool. */
  client: unknown
}

/** Of the time that we wait for an answer: after so much of it the server gives a call up. */
const SERVER_SHARE = 0.75

const KNOWN = ['schema', 'connections', 'listen', 'poll', 'pgbouncer', 'timeout'] as const
const SESSIONS = 'target_session_attrs'

/** @throws InvalidOption */
export function settingsOf(given: URL | string, options: StoreOptions): Settings {
  const [url, ...others] = serverUrls(String(given), 'postgres://user:password@host:5432/database')
  // The client would throw a bare error at the first call. It takes a % that begins no escape for itself.
  for (const encoded of [url.username, url.password, url.pathname])
    credential(encoded.replace(/%(?![0-9a-f]{2})/gi, '%25'))
  // Others in the URL's query are the client's.
  checkNames(options, [], [...KNOWN, 'client'], 'the PostgreSQL store')
  const option = optionIn<(typeof KNOWN)[number]>(options, url.searchParams)
  const schema = option('schema') ?? 'millpond'
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,47}$/.test(schema) || schema.startsWith('pg_')) {
    invalid('schema must be a plain name: a to z, 0 to 9 and _, 48 at most, beginning with a letter')
  }
  const pgbouncer = String(option('pgbouncer') ?? '0')
  if (!['1', '0', 'true', 'false'].includes(pgbouncer)) invalid(`pgbouncer must be 1 or 0, not ${shown(pgbouncer)}`)
  const listen = option('listen') ?? (['1', 'true'].includes(pgbouncer) ? 'off' : 'auto')
  if (listen !== 'auto' && listen !== 'on' && listen !== 'off') {
    invalid(`listen must be auto, on or off, not ${shown(listen)}`)
  }
  const timeout = wholeNumber('timeout', option('timeout'), [20_000, 100, 600_000])
  const writable = takesWrites(url.searchParams.get(SESSIONS) ?? (others.length > 0 ? 'read-write' : 'any'))
  const connections = wholeNumber('connections', option('connections'), [5, 3, 10])
  const poll = wholeNumber('poll', option('poll'), [100, 5, 1000])
  for (const each of [url, ...others]) for (const name of [...KNOWN, SESSIONS]) each.searchParams.delete(name)
  return {
    urls: [url, ...others].map(({ href }) => href),
    writable,
    schema,
    connections,
    listen,
    poll,
    timeout,
    deadline: Math.ceil(timeout * SERVER_SHARE),
    client: options.client,
  }
}

/** Whether only servers will do that take writes. A store always writes; the others of libpq's values are for readers. */
function takesWrites(sessions: string): boolean {
  if (sessions === 'any') return false
  if (sessions === 'read-write' || sessions === 'primary') return true
  return invalid(`${SESSIONS} must be any, read-write or primary, not ${shown(sessions)}`)
}
