/** From the store's URL and options to how its connections are made. */

import type { StoreOptions } from '../../store.ts'
import { shown } from '../../values/duration.ts'
import { MillpondError } from '../../values/errors.ts'
import { shownName } from '../../values/options.ts'
import { credential, serverUrl } from '../url.ts'

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
  /** Ms after which the server gives up a call: before we do, else it would keep the jobs of a claim for nobody. */
  deadline: number
  /** An open client of the caller's: a postgres.js `sql`, or a `pg` Pool. */
  client: unknown
}

const TIMEOUT = 20_000
/** Of the time that we wait for an answer: after so much of it the server gives a call up. */
const SERVER_SHARE = 0.75

const KNOWN = ['schema', 'connections', 'listen', 'poll', 'pgbouncer', 'timeout'] as const

function invalid(message: string): never {
  throw new MillpondError('InvalidOption', message)
}

function integer(name: string, value: unknown, fallback: number, least: number, most: number): number {
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most) return number
  return invalid(`${name} must be a whole number from ${least} to ${most}, not ${shown(value)}`)
}

/** @throws InvalidOption */
export function settingsOf(given: URL | string, options: StoreOptions): Settings {
  const [url, ...others] = urlsIn(String(given))
  // The client would throw a bare error at the first call. It takes a % that begins no escape for itself.
  for (const encoded of [url.username, url.password, url.pathname])
    credential(encoded.replace(/%(?![0-9a-f]{2})/gi, '%25'))
  for (const name of Object.keys(options)) {
    if (name !== 'clock' && name !== 'client' && !KNOWN.some((known) => known === name)) {
      invalid(`unknown option ${shownName(name)}: the PostgreSQL store takes ${KNOWN.join(', ')}, client`)
    }
  }
  // What the code says beats what the URL says: the URL is often shared between programs.
  const option = (name: (typeof KNOWN)[number]): unknown => options[name] ?? url.searchParams.get(name) ?? undefined
  const schema = option('schema') ?? 'millpond'
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,47}$/.test(schema) || schema.startsWith('pg_')) {
    invalid('schema must be a plain name: a to z, 0 to 9 and _, 48 at most, beginning with a letter')
  }
  const pgbouncer = option('pgbouncer') ?? '0'
  if (!['1', '0', 'true', 'false'].includes(String(pgbouncer))) {
    invalid(`pgbouncer must be 1 or 0, not ${shown(pgbouncer)}`)
  }
  const listen = option('listen') ?? (['1', 'true'].includes(String(pgbouncer)) ? 'off' : 'auto')
  if (listen !== 'auto' && listen !== 'on' && listen !== 'off') {
    invalid(`listen must be auto, on or off, not ${shown(listen)}`)
  }
  const timeout = integer('timeout', option('timeout'), TIMEOUT, 100, 600_000)
  const settings: Omit<Settings, 'urls'> = {
    writable: sessionsIn(url, others.length > 0),
    schema,
    connections: integer('connections', option('connections'), 5, 3, 10),
    listen,
    poll: integer('poll', option('poll'), 100, 5, 1000),
    timeout,
    deadline: Math.ceil(timeout * SERVER_SHARE),
    client: options.client,
  }
  const urls = [url, ...others].map((each) => {
    for (const name of [...KNOWN, SESSIONS]) each.searchParams.delete(name)
    return each.href
  })
  return { ...settings, urls }
}

const EXAMPLE = 'postgres://user:password@host:5432/database'

/** One per server: `postgres://one:5432,two:5432/database` is not a URL to the rest of the world. */
function urlsIn(given: string): [URL, ...URL[]] {
  const [, before = '', hosts = '', rest = ''] =
    /^([a-z]+:\/\/(?:[^/?#]*@)?)([^@/?#]*,[^@/?#]*)(.*)$/is.exec(given) ?? []
  const [first = given, ...others] = hosts === '' ? [] : hosts.split(',').map((host) => before + host + rest)
  return [serverUrl(first, EXAMPLE), ...others.map((url) => serverUrl(url, EXAMPLE))]
}

const SESSIONS = 'target_session_attrs'

/** Whether only servers will do that take writes. A store always writes; the others of libpq's values are for readers. */
function sessionsIn(url: URL, several: boolean): boolean {
  const given = url.searchParams.get(SESSIONS) ?? (several ? 'read-write' : 'any')
  if (given === 'any') return false
  if (given === 'read-write' || given === 'primary') return true
  return invalid(`${SESSIONS} must be any, read-write or primary, not ${shown(given)}`)
}
