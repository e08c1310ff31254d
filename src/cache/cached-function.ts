/** A function with a cache in front of it. */

import { preferredFormat } from '../values/encoding/accept.ts'
import { signalOf } from '../values/options/options.ts'
import type { Layers, Wanted } from './layers.ts'
import type { Loader } from './loading/loader.ts'
import type { Entry } from './memory/entry.ts'
import type { CallOptions } from './options.ts'
import { conditional, type Rendered, type RequestHeaders, toResponse } from './ready-answer.ts'
import { checkKey } from './redis/keys.ts'

export interface Cached<In, Out> {
  /**
   * The value. Everyone in the process gets the same object: do not change it.
   * @throws InvalidName: of the key or a tag, InvalidOption, TimedOut, PayloadNotEncodable, PayloadTooLarge, Closed,
   * what the loader throws, and the reason of `signal`. Not for Redis being gone: then the loader is called
   */
  (input: In, options?: CallOptions): Promise<Out>
  /**
   * The value as the answer to a request: ready bytes of JSON or MessagePack by `Accept`, bytes as they are; 304 by
   * `If-None-Match`; 404 for null and undefined. Its headers may be added to.
   * @throws as the call itself; PayloadNotEncodable also for a bigint that is asked for as JSON
   */
  response(request: Request, input: In, options?: CallOptions): Promise<Response>
  /**
   * The same for Express, Fastify and `node:http`: status, headers and bytes, which are everybody's and not to be changed.
   * @param headers the request's
   * @throws as `response`
   */
  rendered(headers: RequestHeaders, input: In, options?: CallOptions): Promise<Rendered>
  /** As `cache.invalidate` of the input's key. @throws InvalidName, StoreUnavailable, StoreFailed, Closed */
  invalidate(input: In): Promise<void>
}

export function cachedFunction<In, Out>(
  keyOf: (input: In) => string,
  loader: Loader<In>,
  layers: Layers,
  invalidate: (key: string) => Promise<void>,
): Cached<In, Out> {
  /** Not async: a hit is answered with the very promise that is kept. */
  function entryOf(input: In, wanted: Wanted, options: CallOptions | undefined): Entry | Promise<Entry> {
    options?.signal?.throwIfAborted()
    const key = keyOf(input)
    return loader.hit(key, input, wanted) ?? miss(key, input, wanted, options)
  }

  async function miss(key: string, input: In, wanted: Wanted, options: CallOptions | undefined): Promise<Entry> {
    const signal = signalOf(options, 'a call of a cached function')
    return loader.get(checkKey(key), input, wanted, signal)
  }

  // What Redis has under the key is what a loader of the same key gave: its type is that loader's word, which nothing can check.
  const valueIn = (entry: Entry): Promise<Out> => layers.valueIn(entry) as Promise<Out>

  const call = (input: In, options?: CallOptions): Promise<Out> => {
    try {
      const entry = entryOf(input, 'value', options)
      return entry instanceof Promise ? entry.then(valueIn) : valueIn(entry)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  const rendered = (headers: RequestHeaders, input: In, options?: CallOptions): Promise<Rendered> => {
    try {
      const form = preferredFormat(headers.accept)
      const ifNoneMatch = headers['if-none-match']
      const entry = entryOf(input, form, options)
      const ready =
        entry instanceof Promise
          ? entry.then((loaded) => layers.renderedIn(loaded, form))
          : layers.renderedIn(entry, form)
      return ifNoneMatch === undefined ? ready : ready.then((made) => conditional(made, ifNoneMatch))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return Object.assign(call, {
    rendered,
    response: async (request: Request, input: In, options?: CallOptions) => {
      const accept = request.headers.get('accept') ?? undefined
      const ifNoneMatch = request.headers.get('if-none-match') ?? undefined
      return toResponse(await rendered({ accept, 'if-none-match': ifNoneMatch }, input, options), request.method)
    },
    invalidate: async (input: In) => invalidate(keyOf(input)),
  })
}
