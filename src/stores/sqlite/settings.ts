/** From the store's URL and options to what the thread is started with. */
import { isAbsolute, resolve } from 'node:path'
import type { StoreOptions } from '../../store.ts'
import { shown } from '../../values/time/duration.ts'
import { checkNames, invalid, optionIn, wholeNumber } from '../options.ts'

export interface Settings {
  /** Absolute. */
  path: string
  /** `full`: a commit is on the disk when it is acknowledged. `normal`: a power cut, not a crash, may cost the last ones. */
  sync: 'full' | 'normal'
  /** How long to wait for another connection's lock, in ms. */
  busyTimeout: number
  /** How long a handler's transaction may be open before it is rolled back, in ms. */
  transactionTimeout: number
  /** Of the module of the SQLite library; null: node:sqlite. See `driver.ts`. */
  module: string | null
}

const IN_URL = ['sync', 'busyTimeout', 'transactionTimeout'] as const

const MAX_MILLISECONDS = 2 ** 31 - 1

/** `sqlite:app.db`, `sqlite:./dir/app.db`, `sqlite:/abs/app.db`, `sqlite:///abs/app.db`. A URL class would make every path absolute. */
function pathOf(url: string): string {
  const [, body = ''] = /^sqlite:([^?#]*)/i.exec(url) ?? invalid('the URL of an SQLite file is sqlite:app.db')
  // What follows would be dropped silently, and another file be opened than the one meant.
  if (url.includes('#')) invalid('the URL has a "#": in a path, write it as %23')
  const encoded = body.replace(/^\/\/(?=\/)/, '')
  if (encoded.startsWith('//')) {
    invalid('the URL names a host: a path in the working folder is sqlite:app.db, an absolute one sqlite:///dir/app.db')
  }
  let path: string
  try {
    path = decodeURIComponent(encoded)
  } catch {
    return invalid('the URL has a "%" that begins no escape: write it as %25')
  }
  if (path === ':memory:')
    invalid('an SQLite database in memory could not be shared or kept: use the store memory: instead')
  if (path === '') invalid('the URL names no file: use sqlite:app.db')
  if (path.includes('\0')) invalid('the path of an SQLite file cannot hold a NUL')
  return isAbsolute(path) ? path : resolve(path)
}

/** @param module of the driver, which is an option in code alone */
export function settingsOf(url: URL | string, options: StoreOptions, module: string | null = null): Settings {
  const given = String(url)
  const path = pathOf(given)
  const query = new URLSearchParams(/\?(.*)/s.exec(given)?.[1] ?? '')
  checkNames({}, query.keys(), IN_URL, 'the URL of an SQLite file')
  checkNames(options, [], [...IN_URL, 'driver'], 'the SQLite store')
  const option = optionIn<(typeof IN_URL)[number]>(options, query)
  const sync = option('sync') ?? 'full'
  if (sync !== 'full' && sync !== 'normal') invalid(`sync must be "full" or "normal", not ${shown(sync)}`)
  return {
    path,
    sync,
    module,
    busyTimeout: wholeNumber('busyTimeout', option('busyTimeout'), [5000, 0, MAX_MILLISECONDS]),
    transactionTimeout: wholeNumber('transactionTimeout', option('transactionTimeout'), [10_000, 1, MAX_MILLISECONDS]),
  }
}
