/** How a worker's attempts wait for a replica: who is asked about what, and when. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { ReplicaQuery, StoreReplica } from '../../src/store.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import { Attempt } from '../../src/worker/attempt.ts'
import { Replica } from '../../src/worker/replica.ts'

const query = (primary: boolean): ReplicaQuery => Object.assign(async () => [], { primary })

function attempt(): Attempt {
  const claimed = { id: newId(), fence: 1, attempt: 1, attempts: 1, priority: 4, pushedAt: 0, dueAt: 0 }
  const rest = { group: null, key: null, timeout: null, trace: null, data: { encoding: 'json', body: '1' } } as const
  return new Attempt({ ...claimed, ...rest }, { now: 0, at: 0, heldUntil: 0 })
}

interface Question {
  ids: string[]
  answer(shown: boolean): void
  fail(error: unknown): void
}

function setUp(limit: number) {
  mock.timers.enable({ apis: ['setTimeout'] })
  let now = 10_000
  mock.method(performance, 'now', () => now)
  const questions: Question[] = []
  const troubles: MillpondError[] = []
  let dropped = 0
  const store: StoreReplica = {
    primary: query(true),
    shows(claims) {
      const { promise, resolve, reject } = Promise.withResolvers<{ shown: boolean[]; query: ReplicaQuery }>()
      questions.push({
        ids: claims.map(({ id }) => id),
        answer: (shown) => resolve({ shown: claims.map(() => shown), query: query(false) }),
        fail: reject,
      })
      return promise
    },
    drop: () => void dropped++,
    close: async () => {},
  }
  const replica = new Replica(store, limit, (error) => troubles.push(error))
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  return {
    replica,
    questions,
    troubles,
    settle,
    dropped: () => dropped,
    /** Ends waits, and collects what they came to. */
    wait(which = attempt()) {
      const outcome: { primary?: boolean; id: string } = { id: which.claimed.id }
      void replica.wait(which).then(({ primary }) => {
        outcome.primary = primary
      })
      return outcome
    },
    async pass(ms: number) {
      now += ms
      mock.timers.tick(ms)
      await settle()
    },
    last(): Question {
      const question = questions.at(-1)
      assert.ok(question, 'no question was asked')
      return question
    },
    [Symbol.dispose]() {
      mock.timers.reset()
      mock.restoreAll()
    },
  }
}

test('those who come in one tick share a question; who is not shown is asked about again after 20 ms', async () => {
  using it = setUp(5000)
  const outcomes = Array.from({ length: 30 }, () => it.wait())
  await it.settle()
  assert.equal(it.questions.length, 1)
  assert.deepEqual(
    it.last().ids,
    outcomes.map(({ id }) => id),
  )
  it.last().answer(false)
  await it.settle()
  await it.pass(19)
  assert.equal(it.questions.length, 1)
  await it.pass(1)
  assert.equal(it.questions.length, 2)
  it.last().answer(true)
  await it.settle()
  assert.ok(outcomes.every(({ primary }) => primary === false))
  await it.pass(10_000)
  assert.equal(it.questions.length, 2, 'nobody waits, nobody asks')
})

test('questions are 5 ms apart, one at a time, and a new one does not ask again about those asked just now', async () => {
  using it = setUp(5000)
  const early = it.wait()
  await it.settle()
  const late = it.wait()
  await it.pass(100)
  assert.equal(it.questions.length, 1, 'one is under way')
  it.last().answer(false)
  await it.settle()
  assert.deepEqual(it.last().ids, [late.id])
  it.last().answer(false)
  await it.settle()
  const third = it.wait()
  await it.pass(4)
  assert.equal(it.questions.length, 2)
  await it.pass(1)
  assert.deepEqual(it.last().ids, [third.id])
  it.last().answer(false)
  await it.pass(15)
  assert.deepEqual(it.last().ids, [early.id, late.id])
})

test('past the limit everyone gets the primary, nobody waits for as long again, and it is said once', async () => {
  using it = setUp(300)
  const outcomes = [it.wait()]
  await it.settle()
  it.last().answer(false)
  for (let n = 0; n < 20; n++) {
    if (n === 10) outcomes.push(it.wait())
    await it.pass(16)
    it.last().answer(false)
  }
  assert.deepEqual(
    outcomes.map(({ primary }) => primary),
    [true, true],
  )
  const asked = it.questions.length
  const resting = it.wait()
  await it.pass(200)
  assert.equal(resting.primary, true)
  assert.equal(it.questions.length, asked)
  assert.equal(it.troubles.length, 1)
  await it.pass(200)
  const again = it.wait()
  await it.settle()
  assert.deepEqual(it.last().ids, [again.id])
})

test('a question that fails, or is not answered, sends everyone to the primary for two seconds', async () => {
  using it = setUp(60_000)
  const failed = it.wait()
  await it.settle()
  it.last().fail(new MillpondError('StoreUnavailable', 'gone'))
  await it.settle()
  assert.equal(failed.primary, true)
  await it.pass(1999)
  assert.equal(it.questions.length, 1)
  await it.pass(1)
  const silent = it.wait()
  await it.settle()
  assert.equal(it.questions.length, 2)
  await it.pass(2000)
  assert.deepEqual([silent.primary, it.dropped()], [true, 1])
  // Too late to count: neither as an answer nor as another failure.
  it.last().fail(new Error('late'))
  await it.settle()
  assert.deepEqual(
    it.troubles.map(({ message }) => /gone|did not answer/.exec(message)?.[0]),
    ['gone', 'did not answer'],
  )
})

test('nobody asks about an attempt that is over, and closing ends all waits without a word', async () => {
  using it = setUp(60_000)
  const over = attempt()
  const outcomes = [it.wait(over), it.wait()]
  await it.settle()
  it.last().answer(false)
  await it.settle()
  over.stop(new MillpondError('JobCancelled', 'cancelled'))
  await it.pass(20)
  assert.deepEqual(it.last().ids, [outcomes[1]?.id])
  await it.replica.close()
  it.last().fail(new Error('closed'))
  await it.settle()
  assert.deepEqual(
    outcomes.map(({ primary }) => primary),
    [true, true],
  )
  assert.deepEqual(it.troubles, [])
})
