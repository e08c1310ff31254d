/** A job that was there already is an answer only for those who may have it. */
import assert from 'node:assert/strict'
import { newId } from '../../src/values/jobs/ids.ts'
import { type AcceptOptions, accept } from '../../src/web/index.ts'
import { inState } from '../api/suite.ts'
import { until } from '../support/until.ts'
import { acceptedId, bodyOf, isProblem, lookedAt, posted, webTest } from './serving.ts'

/** As a service with sessions: the cookie says who it is. */
const userOf = (request: Request) => /session=(\w+)/.exec(request.headers.get('cookie') ?? '')?.[1]
const as = (user: string, headers: Record<string, string> = {}) => ({ cookie: `session=${user}`, ...headers })

/** Asserts that the answer shows nothing of the job. */
async function hidden(response: Response, status: number, id: string, code?: string): Promise<void> {
  assert.equal(response.headers.get('location'), null)
  const document = await isProblem(response, status, code)
  assert.doesNotMatch(JSON.stringify(document), new RegExp(`${id}|ada|done`))
}

webTest('a key of nobody in particular is refused, and nothing is stored or kept from its owner', async ({ pond }) => {
  const queue = pond.queue('q')
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const send = (options: AcceptOptions, headers: Record<string, string>) =>
    accept(queue, { onError, ...options })(posted(1, { 'idempotency-key': 'k', ...headers }))
  await isProblem(await send({}, as('bob')), 400, 'InvalidOption')
  await isProblem(await send({}, { authorization: '' }), 400, 'InvalidOption')
  await isProblem(await send({ idempotency: { scope: userOf } }, {}), 400, 'InvalidOption')
  await isProblem(await send({ idempotency: { scope: () => '' } }, { authorization: 'Bearer x' }), 400, 'InvalidOption')
  assert.deepEqual(errors, [])
  await isProblem(await send({ idempotency: { scope: () => JSON.parse('7') } }, {}), 500)
  assert.match(String(errors[0]), /scope must answer with a text/)
  assert.equal((await queue.stats()).counts.waiting, 0)
  await acceptedId(await send({ idempotency: { scope: userOf } }, as('bob')))
})

webTest("with a scope nobody gets at another's result by its key, nor takes the key", async ({ pond }) => {
  const queue = pond.queue('q')
  const handler = accept(queue, { idempotency: { scope: userOf } })
  const send = (user: string, data: unknown) =>
    handler(posted(data, as(user, { 'idempotency-key': 'order-1', prefer: 'wait=10' })))
  queue.work((job) => `for ${String(job.data)}`)
  const ada = await bodyOf(await send('ada', 'ada'))
  assert.equal(ada.result, 'for ada')
  const bob = await bodyOf(await send('bob', 'ada'))
  assert.notEqual(bob.id, ada.id)
  assert.equal((await bodyOf(await send('cleo', 'cleo'))).result, 'for cleo')
  assert.equal((await bodyOf(await send('ada', 'ada'))).id, ada.id)
})

webTest('where all clients are one tenant, a key needs no scope', async ({ pond }) => {
  const handler = accept(pond.queue('q'), { existing: 'shared' })
  const id = await acceptedId(await handler(posted(1, { 'idempotency-key': 'k' })))
  assert.equal(await acceptedId(await handler(posted(1, { 'idempotency-key': 'k' }))), id)
})

for (const by of ['key', 'id'] as const) {
  webTest(
    `the ${by} that the request gives: 409 for a job that was there, unless all are one tenant`,
    async ({ pond }) => {
      const queue = pond.queue('q')
      const push = (request: Request) => ({ [by]: request.headers.get('x-given') ?? '' })
      const given = newId()
      const send = (options: AcceptOptions, prefer = 'wait=0') =>
        accept(queue, { push, ...options })(posted(1, { 'x-given': given, prefer }))
      const id = await acceptedId(await send({}))
      await hidden(await send({}), 409, id)
      if (by === 'id') {
        queue.work(() => 'for ada only')
        await inState(pond, id, 'done')
      }
      await hidden(await send({}, 'wait=10'), 409, id)
      assert.equal((await bodyOf(await send({ existing: 'shared' }))).id, id)
      assert.equal((await queue.stats()).counts.scheduled, 0)
    },
  )
}

webTest('a guard of existing jobs is asked for each, before anything of the job is told', async ({ pond }) => {
  const queue = pond.queue('q')
  const asked: unknown[] = []
  const handler = accept(queue, {
    push: (request) => ({ key: request.headers.get('x-key') ?? 'none', group: userOf(request) ?? 'nobody' }),
    idempotency: { scope: () => 'everyone' },
    existing: async (request, job) => {
      asked.push([userOf(request), job.group])
      return job.group === userOf(request)
    },
  })
  const send = (user: string, headers: Record<string, string>, data: unknown = 1) =>
    handler(posted(data, as(user, headers)))
  const id = await acceptedId(await send('ada', { 'x-key': 'a' }))
  assert.deepEqual(asked, [], 'the job is new')
  assert.equal(await acceptedId(await send('ada', { 'x-key': 'a' })), id)
  await hidden(await send('bob', { 'x-key': 'a', prefer: 'wait=1' }), 409, id)
  // An Idempotency-Key of a scope that the service gave to both: also the payload is compared for the owner alone.
  const other = await acceptedId(await send('ada', { 'x-key': 'b', 'idempotency-key': 'k' }))
  await hidden(await send('bob', { 'x-key': 'c', 'idempotency-key': 'k' }, 2), 409, other)
  await isProblem(await send('ada', { 'x-key': 'c', 'idempotency-key': 'k' }, 2), 422, 'InvalidOption')
  assert.deepEqual(asked, [
    ['ada', 'ada'],
    ['bob', 'ada'],
    ['bob', 'ada'],
    ['ada', 'ada'],
  ])
})

webTest('a guard that answers with anything but true, or throws, lets nobody have the job', async ({ pond }) => {
  const errors: unknown[] = []
  const answers = ['null', 'false', '1', '"true"', '{}']
  const handler = accept(pond.queue('q'), {
    push: () => ({ key: 'k' }),
    onError: (error) => errors.push(error),
    existing: () => {
      if (answers[0] === undefined) throw new Error('the guard broke')
      return JSON.parse(answers[0])
    },
  })
  const id = await acceptedId(await handler(posted(1)))
  for (; answers.length > 0; answers.shift()) await hidden(await handler(posted(1)), 409, id)
  await hidden(await handler(posted(1)), 500, id)
  await until(() => errors.length === 1)
})

webTest(
  'a job that has left the store in between cannot be asked about: 409, and the next push stores one',
  async ({ pond }) => {
    const queue = pond.queue('q')
    let gone = true
    const looked = lookedAt(queue, { job: async (id) => (gone ? undefined : pond.job(id)) })
    const handler = accept(looked, { push: () => ({ key: 'k' }), existing: () => true })
    const id = await acceptedId(await handler(posted(1)))
    await hidden(await handler(posted(1)), 409, id)
    gone = false
    assert.equal(await acceptedId(await handler(posted(1))), id)
  },
)
