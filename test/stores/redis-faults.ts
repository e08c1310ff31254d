/** A client of a real server, between which and the store answers get lost. */
import { Redis, type RedisOptions } from 'ioredis'
import { scriptOf } from '../../src/stores/redis/connection/scripts.ts'

/** `lost`: the server acts, and its answer is lost. `unreachable`: the server never hears of it. `silent`: it hears of it when `silence` is over. */
export type Fault = 'lost' | 'unreachable' | 'silent'

export interface FaultyClient {
  client: Redis
  /** Decides of each call of a script, by its name; undefined: nothing happens to it. */
  fault: (script: string) => Fault | undefined
  /** Waited for before each call of a script is sent. */
  before: (script: string) => Promise<void> | void
  /** For ever, unless a test sets it. */
  silence: Promise<void>
  /** Bytes of the answers to calls of `claim`. */
  readonly claims: number[]
  disconnect(): void
}

/** The scripts that faults are of. */
const NAMES = [
  ...([
    'cancel',
    'claim',
    'complete',
    'extend',
    'fail',
    'find',
    'list',
    'outcomes',
    'push',
    'push-full',
    'requeue',
    'release',
    'journal',
    'signal',
  ] as const),
  ...(['sweep', 'remove', 'restore', 'update'] as const),
] as const

/** The store makes a connection of its own, which is as faulty. */
export function faultyClient(url: string): FaultyClient {
  const names = new Map<string, string>(NAMES.map((name) => [scriptOf(name).sha, name]))
  const shown = (args: readonly unknown[]): string | undefined => {
    const [command, script] = args.map(String)
    return command === 'eval' ? NAMES.find((name) => scriptOf(name).text === script) : names.get(script ?? '')
  }
  const claims: number[] = []
  const wrap = (real: Redis): Redis =>
    new Proxy(real, {
      get(target, name) {
        if (name === 'duplicate') return (options: RedisOptions) => wrap(target.duplicate(options))
        const value: unknown = Reflect.get(target, name, target)
        if (name !== 'callBuffer') return typeof value === 'function' ? value.bind(target) : value
        return async (...args: Parameters<Redis['callBuffer']>) => {
          const script = shown(args)
          if (script !== undefined) await faulty.before(script)
          const fault = script && faulty.fault(script)
          if (fault === 'silent') await faulty.silence
          if (fault === 'unreachable') throw new Error('Connection is closed.')
          const answer: unknown = await target.callBuffer(...args)
          if (script === 'claim' && Array.isArray(answer)) claims.push(bytesOf(answer))
          if (fault === 'lost') throw new Error('Connection is closed.')
          return answer
        }
      },
    })
  const real = new Redis(url, { lazyConnect: true })
  const faulty: FaultyClient = {
    client: wrap(real),
    fault: () => undefined,
    before: () => undefined,
    silence: new Promise(() => undefined),
    claims,
    disconnect: () => real.disconnect(),
  }
  return faulty
}

const bytesOf = (answer: readonly unknown[]): number =>
  answer.reduce<number>((sum, item) => sum + (Buffer.isBuffer(item) ? item.length : 8), 0)
