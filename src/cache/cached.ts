/** A function with a cache in front of it. */
import { preferredFormat } from '../web/headers.ts'
import type { Entry } from './entry.ts'
import type { Layers, Wanted } from './layers.ts'
import type { Loader } from './loader.ts'
import { checkKey } from './names.ts'
import { type CallOptions, signalOf } from './options.ts'
import { conditional, type Form, type Rendered, type RequestHeaders, toResponse } from './rendered.ts'

export interface Cached<In, Out> {
  /**
   * The value. Everyone in the process gets the same object: do not change it.
   * @throws TimedOut, what the loader throws, PayloadNotEncodable, PayloadTooLarge, Closed, and the reason of `signal`
   */
  (input: In, options?: CallOptions): Promise<Out>
  /**
   * The value as the answer to a request: ready bytes of JSON or MessagePack by `Accept`, bytes as they are; 304 by `If-None-Match`; 404 for null and
   * undefined. Its headers may be added to.
   * @throws as the call itself
   */
  response(request: Request, input: In, options?: CallOptions): Promise<Response>
  /**
   * The same for Express, Fastify and `node:http`: status, headers and bytes, which are everybody's and not to be changed.
   * @param headers the request's
   * @throws as the call itself
   */
  rendered(headers: RequestHeaders, input: In, options?: CallOptions): Promise<Rendered>
  /** As `cache.invalidate` of the input's key. */
  invalidate(input: In): Promise<void>
}

export function cached<In, Out>(
  keyOf: (input: In) => string,
  loader: Loader<In>,
  layers: Layers,
  invalidate: (key: string) => Promise<void>,
): Cached<In, Out> {
  const entryOf = (key: string, input: In, wanted: Wanted, options: CallOptions | undefined): Promise<Entry> => {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    return loader.get(checkKey(key), input, wanted, signal)
  }

  const slow = async (key: string, input: In, options: CallOptions | undefined): Promise<Out> =>
    valueIn(await entryOf(key, input, 'value', options))

  // What Redis has under the key is what a loader of the same key gave: its type is that loader's word, which nothing can check.
  const valueIn = (entry: Entry): Promise<Out> => layers.valueIn(entry) as Promise<Out>

  // Not async: a hit is answered with the very promise that is kept.
  const call = (input: In, options?: CallOptions): Promise<Out> => {
    try {
      options?.signal?.throwIfAborted()
      const key = keyOf(input)
      const entry = loader.hit(key, input, 'value')
      return entry === undefined ? slow(key, input, options) : valueIn(entry)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  const answered = async (entry: Entry, form: Form, headers: RequestHeaders): Promise<Rendered> =>
    conditional(await layers.renderedIn(entry, form), headers['if-none-match'])

  const slowly = async (key: string, input: In, form: Form, headers: RequestHeaders, options?: CallOptions) =>
    answered(await entryOf(key, input, form, options), form, headers)

  // As above: what is ready is answered with the promise that is kept.
  const rendered = (headers: RequestHeaders, input: In, options?: CallOptions): Promise<Rendered> => {
    try {
      options?.signal?.throwIfAborted()
      const form = preferredFormat(headers.accept)
      const key = keyOf(input)
      const entry = loader.hit(key, input, form)
      if (entry === undefined) return slowly(key, input, form, headers, options)
      return headers['if-none-match'] === undefined ? layers.renderedIn(entry, form) : answered(entry, form, headers)
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
