/**
 * After a claim that came short, whatever makes a job startable rings its worker, also where several changes lie between two looks of the one who
 * listens: here they are one commit.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Bell, Store } from '../../src/store.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const QUEUE = 'emails'
const claim = async (store: Store, limit = 10) =>
  (await store.operations.claim({ queue: QUEUE, worker: 'w', limit, lease: 60_000 })).jobs
const error = { code: 'HandlerFailed', name: 'Error', message: 'no' } as const

class Sleeper {
  readonly #heard: Bell[] = []
  #told = Promise.withResolvers<void>()

  constructor(t: TestContext, store: Store) {
    // A store that only listens keeps no process alive.
    const alive = setInterval(() => {}, 60_000)
    const stop = store.listen((bell) => {
      this.#heard.push(bell)
      this.#told.resolve()
      this.#told = Promise.withResolvers()
    })
    t.after(() => {
      stop()
      clearInterval(alive)
    })
  }

  /** Waits until the bell rings. */
  async hears(kind: Bell['kind'], queue = QUEUE): Promise<void> {
    while (!this.#heard.some((bell) => bell.kind === kind && bell.queue === queue)) await this.#told.promise
  }

  /** Until it has looked at all that is there now; what it heard is forgotten. */
  async catchesUp(store: Store): Promise<void> {
    this.#heard.length = 0
    await store.operations.push({ jobs: [job({ queue: 'mark' })] })
    await this.hears('work', 'mark')
    this.#heard.length = 0
  }
}

interface Scene {
  sleeper: Sleeper
  /** Another process, as far as the sleeper can see. */
  other: Store
  path: string
}

async function scene(t: TestContext, settings: object, jobs: readonly NewJob[]): Promise<Scene> {
  const path = newPath()
  const [own, other] = [await openAt(path), await openAt(path)]
  const sleeper = new Sleeper(t, own)
  await other.operations.configure({ queue: QUEUE, ...settings })
  await other.operations.push({ jobs })
  return { path, other, sleeper }
}

const limited = { timeout: 20_000 }

test('a queue is paused and resumed', limited, async (t) => {
  const { other, sleeper } = await scene(t, {}, [job()])
  await sleeper.catchesUp(other)
  await Promise.all([
    other.operations.configure({ queue: QUEUE, paused: true }),
    other.operations.configure({ queue: QUEUE, paused: false }),
  ])
  await sleeper.hears('work')
})

test('a failure frees the slot of a group while another group starts a job', limited, async (t) => {
  const { other, sleeper } = await scene(t, { groupRunning: 1 }, [job({ group: 'g' }), job({ group: 'g' })])
  const [running] = await claim(other)
  assert.ok(running)
  await other.operations.push({ jobs: [job({ group: 'h' })] })
  await sleeper.catchesUp(other)
  const [started] = await Promise.all([
    claim(other, 1),
    other.operations.fail({ queue: QUEUE, items: [{ id: running.id, fence: running.fence, error, delay: 100_000 }] }),
  ])
  assert.equal(started[0]?.group, 'h')
  await sleeper.hears('work')
})

test('a job that was too dear for the rate is cancelled', limited, async (t) => {
  const dear = job({ cost: 5 })
  const { other, sleeper } = await scene(t, { rate: { count: 1, per: 3_600_000, burst: 5 } }, [job(), dear, job()])
  assert.equal((await claim(other)).length, 1)
  await sleeper.catchesUp(other)
  await other.operations.cancel({ ids: [dear.id] })
  await sleeper.hears('work')
  assert.equal((await claim(other)).length, 1)
})

test('a queue is removed, and is back with the totals that it had', limited, async (t) => {
  const { path, other, sleeper } = await scene(t, {}, [job()])
  const [only] = await claim(other)
  assert.ok(only)
  await other.operations.complete({ queue: QUEUE, items: [{ id: only.id, fence: only.fence, result: null }] })
  await sleeper.catchesUp(other)
  const db = connectTo(path)
  db.exec('pragma busy_timeout = 5000; begin immediate; delete from millpond_queues')
  await other.transactions?.push({ tx: db, jobs: [job()] })
  db.exec('commit')
  db.close()
  await sleeper.hears('work')
})

test('a queue was full for a moment, and a push was refused then', limited, async (t) => {
  const { other, sleeper } = await scene(t, { capacity: 2 }, [job()])
  await sleeper.catchesUp(other)
  const [pushed, refused, claimed] = await Promise.all([
    other.operations.push({ jobs: [job({ delay: 100_000 })] }),
    other.operations.push({ jobs: [job()] }),
    claim(other),
  ])
  assert.deepEqual([pushed[0]?.status, refused[0]?.status, claimed.length], ['pushed', 'full', 1])
  await sleeper.hears('room')
})
