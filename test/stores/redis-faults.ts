/** A client of a real server, between which and the store answers get lost, or parts cannot be reached. */
import { Redis } from 'ioredis'
import { type ScriptName, scriptOf } from '../../src/stores/redis/scripts.ts'

/** `lost`: the server acts, and its answer is lost. `unreachable`: the server never hears of it. */
export type Fault = 'lost' | 'unreachable'

export interface FaultyClient {
  client: Redis
  /** Decides of each call of a script, by its name and the partition that it goes to; undefined: nothing happens to it. */
  fault: (script: ScriptName, partition: number) => Fault | undefined
  /** Waited for before each call of a script is sent. */
  before: (script: ScriptName) => Promise<void> | void
  /** Bytes of the answers to calls of `claim`. */
  readonly claims: number[]
  disconnect(): void
}

const NAMES = [
  ...(['cancel', 'claim', 'complete', 'extend', 'fail', 'find', 'push', 'release', 'sweep'] as const),
  ...(['listed', 'register', 'remove', 'unregister'] as const),
] as const

export function faultyClient(url: string): FaultyClient {
  const real = new Redis(url)
  const names = new Map<string, ScriptName>(NAMES.map((name) => [scriptOf(name).sha, name]))
  const shown = (args: readonly unknown[]): ScriptName | undefined => {
    const [command, script] = args.map(String)
    return command === 'eval' ? NAMES.find((name) => scriptOf(name).text === script) : names.get(script ?? '')
  }
  const claims: number[] = []
  const client = new Proxy(real, {
    get(target, name) {
      // As on a cluster, where each partition's calls go out by themselves.
      if (name === 'isCluster') return true
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'callBuffer') return typeof value === 'function' ? value.bind(target) : value
      return async (...args: Parameters<Redis['callBuffer']>) => {
        const script = shown(args)
        const partition = Number(/#(\d+)\}/.exec(String(args[3]))?.[1] ?? 0)
        if (script !== undefined) await faulty.before(script)
        const fault = script && faulty.fault(script, partition)
        if (fault === 'unreachable') throw new Error('Connection is closed.')
        const answer: unknown = await target.callBuffer(...args)
        if (script === 'claim' && Buffer.isBuffer(answer)) claims.push(answer.length)
        if (fault === 'lost') throw new Error('Connection is closed.')
        return answer
      }
    },
  })
  const faulty: FaultyClient = {
    client,
    fault: () => undefined,
    before: () => undefined,
    claims,
    disconnect: () => real.disconnect(),
  }
  return faulty
}
