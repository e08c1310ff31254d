/** `coalesceResponses` under Hono on a real server, by the adapter that docs/coalesce.md shows. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { type ServerType, serve } from '@hono/node-server'
import { Hono, type MiddlewareHandler } from 'hono'
import { type CoalesceResponsesOptions, coalesceResponses } from '../../src/web/coalesce.ts'
import { until } from '../support/until.ts'
import { settle } from './coalesce-fixture.ts'

function coalesced(options?: CoalesceResponsesOptions) {
  const share = coalesceResponses(options)
  const middleware: MiddlewareHandler = async (c, next) => {
    const answer = await share(c.req.raw, async () => {
      await next()
      return c.res
    })
    // Hono would add the headers of the response that was there.
    c.res = undefined
    c.res = answer
  }
  return { share, middleware }
}

/** An app on a port of its own, whose route answers when the test says so. */
async function listening(t: TestContext, options?: CoalesceResponsesOptions) {
  const { share, middleware } = coalesced(options)
  const gate = Promise.withResolvers<void>()
  const seen = { runs: 0 }
  const app = new Hono()
  app.use(middleware)
  app.get('/large', (c) => c.text('x'.repeat(100_000)))
  app.get('/broken', async () => {
    await gate.promise
    throw new Error('broken')
  })
  app.get('*', async (c) => {
    seen.runs++
    await gate.promise
    return c.json({ run: seen.runs, user: c.req.header('cookie') ?? null })
  })
  app.onError((error, c) => c.json({ error: error.message }, 500))
  const server: ServerType = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const { port } = address
  const agent = new Agent({ keepAlive: true })
  t.after(() => {
    agent.destroy()
    server.close()
  })
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): ClientRequest => {
    const made = request({ port, host: '127.0.0.1', path, method, headers, agent })
    made.on('error', () => {})
    made.end()
    return made
  }
  return { share, open: gate.resolve, seen, get }
}

async function answerTo(
  made: ClientRequest,
): Promise<{ status: number | undefined; text: string; length: string | undefined }> {
  const [response]: IncomingMessage[] = await once(made, 'response')
  assert.ok(response)
  return {
    status: response.statusCode,
    length: response.headers['content-length'],
    text: (await buffer(response)).toString(),
  }
}

describe('under Hono', { timeout: 60_000 }, () => {
  test('two hundred connections share one run; those with a cookie do not', async (t) => {
    const { share, open, seen, get } = await listening(t)
    const all = Array.from({ length: 200 }, () => answerTo(get('/')))
    const own = ['ada', 'bob'].map((cookie) => answerTo(get('/', { cookie })))
    await until(() => share.stats().joined === 199 && share.stats().alone === 2)
    open()
    const answers = await Promise.all(all)
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    assert.deepEqual(
      answers.map(({ status, length, text }) => [status, length === String(text.length)]),
      Array(200).fill([200, true]),
    )
    assert.deepEqual(
      (await Promise.all(own)).map(({ text }) => JSON.parse(text).user),
      ['ada', 'bob'],
    )
    assert.equal(seen.runs, 3)
  })

  test('an error of the handler is answered to all, as the app says', async (t) => {
    const { share, open, get } = await listening(t)
    const all = Array.from({ length: 10 }, () => answerTo(get('/broken')))
    await until(() => share.stats().joined === 9)
    open()
    for (const { status, text } of await Promise.all(all)) {
      assert.deepEqual([status, JSON.parse(text)], [500, { error: 'broken' }])
    }
  })

  test('a body over the bound arrives whole, and HEAD without one', async (t) => {
    const { open, get } = await listening(t, { maxBody: 50_000 })
    open()
    const answers = await Promise.all([1, 2, 3].map(() => answerTo(get('/large'))))
    for (const { text } of answers) assert.equal(text, 'x'.repeat(100_000))
    const { status, text } = await answerTo(get('/', {}, 'HEAD'))
    assert.deepEqual([status, text], [200, ''])
  })

  test('clients that hang up, the first one too, leave the others their answer', async (t) => {
    const { share, open, seen, get } = await listening(t)
    const all = Array.from({ length: 300 }, () => get('/'))
    const stay = all.filter((_, index) => index % 3 === 2).map((made) => answerTo(made))
    await until(() => share.stats().joined === 299)
    for (const [index, made] of all.entries()) if (index % 3 !== 2) made.destroy()
    await settle()
    open()
    const answers = await Promise.all(stay)
    assert.equal(answers.length, 100)
    for (const { status } of answers) assert.equal(status, 200)
    assert.ok(seen.runs <= 2, `${seen.runs} runs`)
    await until(() => share.stats().underWay === 0)
  })
})
