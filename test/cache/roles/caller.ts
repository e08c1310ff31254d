/** `caller.ts URL PREFIX`: a process that uses a cache all the time, and on each message says what came of it since the last one. It ends with the test. */
import { Cache } from '../../../src/cache/index.ts'
import { isMillpondError } from '../../../src/values/errors/errors.ts'

/** What came of a kind of call: how many values, and how many errors of each code, or of each name where there is none. */
export interface Tally {
  values: number
  errors: Record<string, number>
}

const KINDS = ['stale', 'held', 'loaded', 'failing', 'get', 'set', 'invalidate', 'invalidateTag'] as const
type Kind = (typeof KINDS)[number]
export type Tallies = Record<Kind, Tally>

const [url = '', prefix = ''] = process.argv.slice(2)
const cache = await Cache.open(url, { prefix, drift: 400, timeout: 300, onError: () => undefined })
let loads = 0
let down = false
const load = () => {
  if (down) throw new RangeError('the loader is down as well')
  return ++loads
}
const stale = cache.wrap(load, { key: () => 'stale', ttl: 50, stale: '1h', tags: ['t'] })
const held = cache.wrap(load, { key: () => 'held', ttl: 50, staleIfError: '1h' })
const loaded = cache.wrap(() => ++loads, { key: (id: number) => `loaded:${id}`, ttl: '1h' })
const failing = cache.wrap(load, { key: (id: number) => `failing:${id}`, ttl: '1h' })

let turn = 0
const calls: Record<Kind, () => Promise<unknown>> = {
  stale: () => stale(),
  held: () => held(),
  loaded: () => loaded(turn),
  failing: () => failing(turn),
  get: () => cache.get('set'),
  set: () => cache.set('set', turn, { ttl: '1h' }),
  invalidate: () => cache.invalidate('other'),
  invalidateTag: () => cache.invalidateTag('other'),
}

let tallies = new Map<Kind, Tally>()
const tallyOf = (kind: Kind): Tally => {
  const tally = tallies.get(kind) ?? { values: 0, errors: {} }
  tallies.set(kind, tally)
  return tally
}

await Promise.all([stale(), held()])
down = true
setInterval(() => {
  turn++
  for (const kind of KINDS) {
    calls[kind]().then(
      () => tallyOf(kind).values++,
      (error: unknown) => {
        const { errors } = tallyOf(kind)
        const name = isMillpondError(error) ? error.code : error instanceof Error ? error.name : String(error)
        errors[name] = (errors[name] ?? 0) + 1
      },
    )
  }
}, 10)

const tell = () => {
  process.send?.(Object.fromEntries(KINDS.map((kind) => [kind, tallyOf(kind)])))
  tallies = new Map()
}
process.on('message', tell)
process.on('disconnect', () => process.exit())
tell()
