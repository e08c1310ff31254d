/** Which store answers to a URL. A store's module, and the client it needs, is loaded when it is first used. */

import type { OpenStore, Store, StoreOptions } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { hasTag } from '../values/runtime/realms.ts'
import { kindOf } from '../values/time/duration.ts'
import { shardsIn } from './shard-urls.ts'
import { observed } from './telemetry.ts'

const STORES: Record<string, () => Promise<{ open: OpenStore }>> = {
  memory: () => import('./memory/index.ts'),
  sqlite: () => import('./sqlite/index.ts'),
  redis: () => import('./redis/index.ts'),
  rediss: () => import('./redis/index.ts'),
  'redis+sentinel': () => import('./redis/index.ts'),
  'rediss+sentinel': () => import('./redis/index.ts'),
  postgres: () => import('./postgres/index.ts'),
  postgresql: () => import('./postgres/index.ts'),
  amqp: () => import('./rabbitmq/index.ts'),
  amqps: () => import('./rabbitmq/index.ts'),
}

/** @throws InvalidOption, UnknownScheme, and whatever the store's `open` does */
export async function openStore(given: unknown, { seal, ...rest }: StoreOptions): Promise<Store> {
  const wrap = seal === undefined ? (store: Store) => store : await sealing(seal)
  const { urls, options } = shardsIn(given, rest)
  if (urls.length === 1) return observed(wrap(await openPlain(urls[0], options)))
  const { openShards } = await import('./shards/index.ts')
  return observed(await openShards(urls, (url) => openPlain(url, options), wrap))
}

async function sealing(seal: unknown): Promise<(store: Store) => Store> {
  const { Sealer } = await import('../values/encoding/seal.ts')
  const sealer = new Sealer(seal)
  const { sealed } = await import('./seal.ts')
  return (store) => sealed(store, sealer)
}

async function openPlain(url: unknown, options: StoreOptions): Promise<Store> {
  const text = hasTag(url, 'URL') ? String(url) : url
  const known = Object.keys(STORES)
    .map((scheme) => `${scheme}:`)
    .join(', ')
  if (typeof text !== 'string' || !text.includes(':')) {
    const got = typeof text === 'string' ? 'a string without a scheme. A file is sqlite:app.db' : kindOf(text)
    throw new MillpondError('InvalidOption', `a store's URL begins with one of ${known}; got ${got}`)
  }
  const scheme = text.slice(0, text.indexOf(':')).toLowerCase()
  const load = Object.hasOwn(STORES, scheme) ? STORES[scheme] : undefined
  if (load === undefined) {
    throw new MillpondError('UnknownScheme', `no store answers to ${shownScheme(scheme)}; known are ${known}`)
  }
  if (scheme === 'memory') {
    const { url: own, spill, ...rest } = spillOf(text, options)
    if (spill !== undefined) return openSpilling(own, rest, spill)
  }
  const { open } = await load()
  return open(text, options)
}

/** A URL, or an object with `url` and the options of that store. */
async function openSpilling(url: string, options: StoreOptions, spill: unknown): Promise<Store> {
  const { openMemory } = await import('./memory/index.ts')
  const { spillOver } = await import('./spill/index.ts')
  const { store, state } = openMemory(url, options)
  const isObject = typeof spill === 'object' && spill !== null && 'url' in spill
  const { url: given, ...own } = isObject ? spill : { url: spill }
  if (typeof given !== 'string' && !hasTag(given, 'URL')) {
    const message = `spill takes the URL of a durable store, or an object with url; got ${kindOf(spill)}`
    throw new MillpondError('InvalidOption', message)
  }
  const clock = options.clock === undefined ? {} : { clock: options.clock }
  return spillOver(store, state, await openStore(given, { ...clock, ...own }))
}

/** The durable store that a URL leads to: where `memory:` spills to one, that one's. */
export function durableUrl(url: string): string {
  if (!/^memory:/i.test(url)) return url
  const { spill } = spillOf(url, {})
  return typeof spill === 'string' ? spill : url
}

/** What the code says beats what the URL says. */
function spillOf(text: string, { spill, ...options }: StoreOptions): StoreOptions & { url: string; spill?: unknown } {
  const end = text.indexOf('?')
  const address = end < 0 ? text : text.slice(0, end)
  // The URL of the spill store may have a query of its own.
  const query = new URLSearchParams(end < 0 ? '' : text.slice(end + 1))
  const given = spill ?? query.get('spill') ?? undefined
  query.delete('spill')
  return {
    ...options,
    url: query.size === 0 ? address : `${address}?${query}`,
    ...(given !== undefined && { spill: given }),
  }
}

/** What stands before the first colon is no scheme where the URL was written wrongly, and might be a password. */
function shownScheme(scheme: string): string {
  return /^[a-z][a-z0-9+.-]{0,30}$/.test(scheme) ? `"${scheme}:"` : 'it'
}
