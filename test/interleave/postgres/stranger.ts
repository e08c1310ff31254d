/** A session of its own kind: an application's transaction that holds something from before the race, until it is told to end. */

import type { StrangerHolds } from '../arena.ts'
import { type Effect, type Kind, operation } from '../operations.ts'
import type { World } from '../world.ts'
import type { Connected } from './session.ts'
import { sqlCalls } from './sql-calls.ts'

/** Operations that wait for no stranger, whatever it holds. */
const NEVER: ReadonlySet<Kind> = new Set([
  ...(['claim', 'sleep', 'extend', 'sweep', 'settings', 'heartbeat', 'requeueUntil'] as const),
  ...(['journal', 'signal', 'parkLater', 'parkAfter'] as const),
  ...(['bulkRequeue', 'bulkCancel', 'bulkUpdate', 'bulkRemove'] as const),
])
/** These need nothing but the room of their queue. */
const PUSHES: ReadonlySet<Kind> = new Set(['push', 'pushMany', 'pushInTransaction'])

export class Stranger {
  readonly pid: number
  readonly #connection: Connected
  readonly #schema: string
  #effect: Effect | undefined
  #holds: StrangerHolds = 'key'
  readonly at = 'a stranger'
  state: 'ready' | 'over' = 'over'

  constructor(connection: Connected, schema: string) {
    this.pid = connection.pid
    this.#connection = connection
    this.#schema = schema
  }

  /** @param bound gives the queue a capacity */
  async begin(world: World, holds: StrangerHolds, bound: () => Promise<unknown>): Promise<void> {
    this.#holds = holds
    const { client } = this.#connection
    const calls = sqlCalls(client, this.#schema, 'stranger')
    const given = operation('push')
    const push = async (...jobs: ReturnType<World['job']>[]) => {
      await calls.pushInTransaction({ jobs })
      this.#effect = () => world.pushed.push(...jobs.map(({ id }) => id))
    }
    if (holds === 'room') await bound()
    await client.query('begin')
    this.state = 'ready'
    this.#effect = undefined
    if (holds === 'room') await push(world.job(given))
    else if (holds === 'key') await push(world.keyed(given))
    else if (holds === 'keys') await push(world.keyed(given), world.keyed(given))
    else if (holds === 'replaced') await push(world.keyed(given, { replace: true }))
    else if (holds === 'followed') await push(world.keyed(given, { follow: true }))
    else if (holds === 'parent')
      await push(
        world.child(
          given,
          world.newestFirst(1).map(({ id }) => id),
        ),
      )
    else if (holds === 'completion') {
      const ended = world.take(1)
      const items = ended.map((hold) => ({ ...hold, result: null }))
      await calls.complete({ queue: world.queue, items })
      this.#effect = () => world.ended(ended)
    } else {
      await client.query(`update ${this.#schema}.schedules set paused = paused where name = $1`, [world.queue])
    }
    // Only now, so that it does not hold the room as well.
    if (holds !== 'room') await bound()
  }

  /** Whether an operation of that kind must go past it. */
  mustPass(kind: Kind): boolean {
    return NEVER.has(kind) || (PUSHES.has(kind) && this.#holds !== 'room')
  }

  async settle(): Promise<void> {}

  async step(): Promise<undefined> {
    if (this.state === 'ready') await this.#connection.client.query('commit')
    this.state = 'over'
    this.#effect?.()
  }
}
