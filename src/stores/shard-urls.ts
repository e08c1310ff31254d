/** The stores that an address names: one URL, several with commas between, or a Redis with `shards`. */
import type { StoreOptions } from '../store.ts'
import { hasTag } from '../values/runtime/realms.ts'
import { invalid, wholeNumber } from './options.ts'

const MAX_SHARDS = 64

/** Stores that can be shards, by the schemes of their URLs. A comma also stands between the hosts of one URL: `redis://a:7000,b:7000`. */
const KINDS = [/^rediss?(\+sentinel)?:/i, /^postgres(ql)?:/i, /^sqlite:/i]
const NEXT_URL = /,(?=(?:rediss?(?:\+sentinel)?|postgres(?:ql)?):\/\/|sqlite:)/i

export interface Shards {
  /** One: the store has no shards. */
  urls: readonly unknown[]
  /** For each of them. */
  options: StoreOptions
}

/** @param given as of `Millpond.open` @throws InvalidOption */
export function shardsIn(given: unknown, options: StoreOptions = {}): Shards {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given]
  const urls = list
    .map((url) => (hasTag(url, 'URL') ? String(url) : url))
    .flatMap((url) => (typeof url === 'string' && !/^memory:/i.test(url) ? url.split(NEXT_URL) : [url]))
  if (urls.length === 0 || urls.length > MAX_SHARDS) invalid(`a list of stores has 1 to ${MAX_SHARDS} URLs`)
  const [first] = urls
  if (typeof first === 'string' && KINDS[0]?.test(first)) {
    const { shards, prefix, ...rest } = options
    const [address = '', query] = first.split(/\?(.*)/s)
    const inUrl = new URLSearchParams(query)
    const number = shards ?? inUrl.get('shards') ?? undefined
    if (number !== undefined) {
      if (urls.length > 1) invalid('shards is for one URL: a list of URLs says by itself how many there are')
      inUrl.delete('shards')
      const base = prefix ?? inUrl.get('prefix') ?? 'millpond'
      const prefixed = (_: unknown, shard: number) => {
        inUrl.set('prefix', `${base}.${shard}`)
        return `${address}?${inUrl}`
      }
      return {
        urls: Array.from({ length: wholeNumber('shards', number, [1, 1, MAX_SHARDS]) }, prefixed),
        options: rest,
      }
    }
  }
  if (urls.length > 1 && !KINDS.some((kind) => urls.every((url) => typeof url === 'string' && kind.test(url))))
    invalid('a list of stores has URLs of one kind: all redis://, all postgres:// or all sqlite:')
  return { urls, options }
}
