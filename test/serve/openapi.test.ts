/** The document is valid, and each of its operations answers as it says: the status is listed, the body is of its schema. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { check, type Schema } from '../../src/serve/json-schema.ts'
import { type Answered, answered, type Client, serveTest } from './client.ts'

interface Operation {
  operationId: string
  parameters?: { name: string; in: string; required: boolean; schema: Schema }[]
  requestBody?: { required: boolean; content: Record<string, { schema?: Schema }> }
  responses: Record<
    string,
    {
      description: string
      content?: Record<string, { schema?: Schema }>
      headers?: Record<string, { required: boolean }>
    }
  >
  security?: unknown[]
}
interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; securitySchemes?: unknown }
}

/** A schema with what it refers to in place. */
function resolved(schema: unknown, document: Document): unknown {
  if (Array.isArray(schema)) return schema.map((item) => resolved(item, document))
  if (typeof schema !== 'object' || schema === null) return schema
  if ('$ref' in schema && typeof schema.$ref === 'string') {
    const name = schema.$ref.replace('#/components/schemas/', '')
    assert.ok(Object.hasOwn(document.components.schemas, name), schema.$ref)
    return resolved(document.components.schemas[name], document)
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(value, document)]))
}

async function documentOf(client: Client): Promise<Document> {
  const { status, body } = await client.get('/openapi.json')
  assert.equal(status, 200)
  return JSON.parse(JSON.stringify(body))
}

function operationsOf({ paths }: Document): { path: string; method: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
}

serveTest(
  'the document is whole: ids are unique, parameters are those of the path, references lead somewhere',
  async ({ open }) => {
    const document = await documentOf(await open())
    assert.equal(document.openapi, '3.1.0')
    const operations = operationsOf(document)
    assert.ok(operations.length >= 17)
    assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length)
    for (const { path, operation } of operations) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const inPath = operation.parameters?.filter((parameter) => parameter.in === 'path').map(({ name }) => name) ?? []
      assert.deepEqual(inPath, names)
      assert.ok(Object.keys(operation.responses).length >= 2)
      for (const { description } of Object.values(operation.responses)) assert.ok(description !== '')
      resolved(operation, document)
    }
    for (const schema of Object.values(document.components.schemas)) {
      assert.ok(typeof schema.type === 'string' || schema.description !== undefined)
    }
  },
)

serveTest('with a token it says which operations ask for it', async ({ open }) => {
  const document = await documentOf(await open({ tokens: ['0123456789abcdef'] }))
  assert.ok(document.components.securitySchemes)
  for (const { path, operation } of operationsOf(document)) {
    assert.equal(operation.security?.length, path === '/healthz' ? 0 : 1)
    assert.equal('401' in operation.responses, path !== '/healthz')
  }
})

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

/** For each operation: what it is asked, in good ways and bad ones. `{id}` is a job that is in the state named. */
const CALLS: Record<
  string,
  { state?: 'waiting' | 'running' | 'done' | 'dead'; key?: string; bodies?: unknown[]; queries?: string[] }
> = {
  pushJob: {
    bodies: [
      { data: 1 },
      { data: 1, after: [UNKNOWN] },
      { data: 1, partOf: UNKNOWN },
      { data: { a: [null] }, key: 'k', delay: 5, timeout: 10, cost: 2 },
      {},
      7,
    ],
  },
  pushJobs: { bodies: [{ jobs: [{ data: 1 }, { data: 2, priority: 9 }] }, { jobs: [] }] },
  pushGraph: {
    bodies: [
      {
        jobs: [
          { queue: 'graph', data: 1 },
          { queue: 'graph', data: 2, after: [0], onDead: 'run', priority: 9 },
        ],
      },
      { jobs: [{ queue: 'graph', data: 1, after: [UNKNOWN] }] },
      { jobs: [{ queue: 'graph', data: 1, after: [0] }] },
      { jobs: [{ queue: 'graph', data: 1, after: ['first'] }] },
      { jobs: [] },
    ],
  },
  jobGraph: { state: 'waiting', queries: ['', '?limit=1', '?limit=0'] },
  jobParents: { state: 'running', queries: ['', `?limit=1&after=${UNKNOWN}`, '?limit=x'] },
  jobSteps: { state: 'waiting' },
  signalJob: { state: 'waiting', bodies: [{ data: { by: 'ada' } }, {}, { other: 1 }] },
  signalKey: { key: 'held', bodies: [{ key: 'held', name: 'go', data: 1 }, { key: 'none', name: 'go' }, { key: 'k' }] },
  followJob: { state: 'done' },
  explainJob: { state: 'waiting' },
  cancelJob: { state: 'waiting' },
  updateJob: { state: 'waiting', bodies: [{ data: [1], priority: 7, delay: 5 }, { runAt: 1 }, {}, { priority: 10 }] },
  removeJob: { state: 'waiting' },
  removeQueue: { state: 'waiting' },
  getSettings: {},
  planQueue: { queries: ['', '?minutes=1&drainWithin=1000&wait=50&hold=0', '?hold=-1'] },
  listWorkers: { queries: ['', '?queue=q', '?queue=%20'] },
  requeueJob: { state: 'dead', bodies: [undefined, {}, { all: true }] },
  claimJobs: {
    state: 'waiting',
    bodies: [undefined, { limit: 3, worker: 'w', lease: 5000, minPriority: 1 }, { limit: 'x' }],
  },
  completeJob: { state: 'running', bodies: [{ fence: 1, result: { x: 1 } }, { fence: 9 }, {}] },
  failJob: { state: 'running', bodies: [{ fence: 1, error: { message: 'm', name: 'n', stack: 's' } }, { fence: 9 }] },
  releaseJob: { state: 'running', bodies: [{ fence: 1, rateLimited: 9 }, { fence: 9 }, { fence: 1, result: 1 }] },
  extendClaim: { state: 'running', bodies: [{ fence: 1, lease: 5000, progress: [1] }, { fence: 9 }] },
  settleJobs: { state: 'running', bodies: [{ complete: [{ id: UNKNOWN, fence: 1 }] }, {}, { fail: [{}] }] },
  listQueues: { queries: ['', '?minutes=1', '?minutes=99'] },
  getQueue: { queries: ['', '?minutes=1', '?x=1'] },
  changeQueue: {
    bodies: [
      { paused: false, capacity: 1000, keepDone: 60_000, limits: { rate: { count: 1, per: 1 } } },
      {},
      { paused: 1 },
    ],
  },
  listGroups: { queries: ['', '?limit=1', '?after=%2F&limit=100', '?limit=101'] },
  changeGroup: {
    bodies: [
      { group: 'g', running: 1, weight: 0.5 },
      { group: '' },
      {},
      { group: 'g', weight: 0 },
      { group: 'g', rate: '1/s' },
    ],
  },
  listJobs: {
    state: 'dead',
    queries: [
      '?state=dead',
      '?state=done&limit=1',
      '?state=running',
      `?state=dead&after=${UNKNOWN}`,
      '?limit=x',
      '',
      '?state=dead&key=k&pushedFrom=1',
    ],
  },
  changeJobs: {
    state: 'dead',
    bodies: [
      { action: 'requeue', dryRun: true, errorText: 'm' },
      { action: 'requeue', limit: 5, group: '' },
      { action: 'update', state: 'scheduled', priority: 3, runAt: '2030-01-01T00:00:00Z' },
      { action: 'remove' },
      { action: 'cancel', state: 'dead' },
      { action: 'promote', after: '5~scheduled' },
      { action: 'update', state: 'waiting', delay: 1, runAt: 1 },
      {},
    ],
  },
  requeueDead: { state: 'dead', bodies: [undefined, {}, null] },
  listSchedules: { queries: ['', '?limit=1', '?after=a', '?limit=101'] },
  declareSchedule: { bodies: [{ name: 's', when: '@daily', queue: 'q', data: 1, from: 0 }, { name: 's' }] },
  getSchedule: {},
  changeSchedule: { bodies: [{ paused: true }, {}] },
  removeSchedule: {},
  runSchedule: { bodies: [undefined, {}, null] },
  previewSchedule: { queries: ['?when=%40daily&count=2', '?when=x', ''] },
  getHealth: {},
  getMetrics: {},
  getOpenApi: {},
}

serveTest('every operation answers as it says', async ({ open }) => {
  const client = await open()
  const document = await documentOf(client)
  const statuses = new Set<string>()
  // Removals come last: the fences of later jobs begin above those of removed ones, and the calls above say 1.
  const isRemoval = ({ operation }: { operation: Operation }) => Number(operation.operationId.startsWith('remove'))
  const operations = operationsOf(document).sort((a, b) => isRemoval(a) - isRemoval(b))
  for (const { path, method, operation } of operations) {
    const { operationId: name } = operation
    const calls = CALLS[name]
    assert.ok(calls !== undefined, `${name} has no calls here`)
    for (const body of calls.bodies ?? [undefined]) {
      for (const query of calls.queries ?? ['']) {
        const queue = `q${statuses.size}-${name}`
        const id = await jobIn(client, queue, calls.state ?? 'waiting')
        if (calls.key !== undefined) await client.push(queue, 'data', { key: calls.key })
        for (const one of [id, UNKNOWN]) {
          const target = path
            .replace('{queue}', queue)
            .replace('{name}', one === id ? queue : 'none')
            .replace('{id}', one)
          for (const accept of ['application/json', 'text/html', 'text/plain']) {
            const answer = await client.ask(method, `${target}${query}`, body, { accept })
            asItSays(document, operation, answer)
            statuses.add(`${name} ${answer.status}`)
          }
        }
      }
    }
  }
  // Each was seen to do what it is for.
  for (const name of Object.keys(CALLS)) assert.ok(statuses.has(`${name} 200`) || statuses.has(`${name} 202`), name)
})

/** What any operation may be asked wrongly, and what it must answer then. `POST` ones also take a body. */
interface Wrong {
  what: string
  status: number
  /** Of the operations that it concerns; all unless given. */
  only?: (path: string, method: string, operation: Operation) => boolean
  path?: (path: string) => string
  headers?: Record<string, string>
  body?: string
}
const takesBody: Wrong['only'] = (_path, _method, { requestBody }) => requestBody !== undefined
const isPost: Wrong['only'] = (_path, method) => method === 'POST'
const JSON_TYPE = { 'content-type': 'application/json' }
const WRONGS: readonly Wrong[] = [
  { what: 'an unknown parameter', status: 422, path: (path) => `${path}?unknown=1` },
  {
    what: 'a path that is no UTF-8',
    status: 400,
    only: (path) => path.includes('{'),
    path: (path) => path.replace(/\{\w+\}/, '%ff'),
  },
  {
    what: 'the name of no queue',
    status: 400,
    only: (path) => path.includes('{queue}'),
    path: (path) => path.replace('{queue}', '-x'),
  },
  {
    what: 'an Idempotency-Key that is none',
    status: 400,
    only: (_path, _method, { parameters }) => parameters?.some(({ name }) => name === 'idempotency-key') ?? false,
    headers: { ...JSON_TYPE, 'idempotency-key': 'a,b' },
  },
  { what: 'no token', status: 401, only: (path) => path !== '/healthz', headers: { authorization: 'Bearer wrong' } },
  { what: 'a page of another origin', status: 403, headers: { origin: 'https://evil.example' } },
  { what: 'an Accept that leaves nothing', status: 406, headers: { accept: 'image/png' } },
  { what: 'a body over the limit', status: 413, only: takesBody, headers: JSON_TYPE, body: `"${'x'.repeat(3000)}"` },
  { what: 'no Content-Type', status: 415, only: isPost },
  {
    what: 'the type of a form',
    status: 415,
    only: isPost,
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  },
  { what: 'the type of text', status: 415, only: takesBody, headers: { 'content-type': 'text/plain' }, body: '{}' },
  { what: 'a body that is no JSON', status: 400, only: takesBody, headers: JSON_TYPE, body: '{' },
  { what: 'a number that no double holds', status: 400, only: takesBody, headers: JSON_TYPE, body: '{"data":1e999}' },
  { what: 'a body of another shape', status: 422, only: takesBody, headers: JSON_TYPE, body: '[]' },
]

serveTest('every operation lists each way in which it may refuse a request', async ({ open }) => {
  const client = await open({ tokens: ['0123456789abcdef'], maxBody: 2000 })
  const document = await documentOf(client)
  for (const { path, method, operation } of operationsOf(document)) {
    const queue = `q-${operation.operationId}`
    for (const { what, status, only, path: changed = (given: string) => given, headers = {}, body } of WRONGS) {
      if (only !== undefined && !only(path, method, operation)) continue
      const id = await jobIn(client, queue, 'waiting')
      // As far as it goes, what is asked is right: the body, unless the fault lies in it or its type.
      const good = CALLS[operation.operationId]?.bodies?.find((one) => one !== undefined)
      const text = body ?? (operation.requestBody && status !== 415 ? JSON.stringify(good ?? {}) : undefined)
      const typed = text === undefined ? headers : { ...JSON_TYPE, ...headers }
      const needsState = operation.parameters?.some(({ name }) => name === 'state')
      const asked = targetOf(changed(path), queue, id)
      const target = needsState ? `${asked}${asked.includes('?') ? '&' : '?'}state=dead` : asked
      const init = { headers: typed, ...(text === undefined ? {} : { body: text }) }
      const answer = await answered(await client.raw(method, target, init))
      assert.equal(answer.status, status, `${operation.operationId} with ${what}: ${JSON.stringify(answer.body)}`)
      asItSays(document, operation, answer)
      // Nothing came of it.
      assert.equal(await client.state(id), 'waiting', `${operation.operationId} with ${what}`)
    }
  }
})

serveTest(
  'every POST needs a Content-Type, or where it has no body a header that forms cannot send',
  async ({ open }) => {
    const client = await open()
    const document = await documentOf(client)
    const posts = operationsOf(document).filter(({ method }) => method === 'POST')
    assert.ok(posts.length >= 10)
    for (const { path, operation } of posts) {
      const { operationId: name, requestBody, parameters } = operation
      const queue = `q-${name}`
      const id = await jobIn(client, queue, CALLS[name]?.state ?? 'waiting')
      const target = targetOf(path, queue, id)
      const before = await client.state(id)
      const ask = async (headers: Record<string, string>) => (await client.raw('POST', target, { headers })).status
      for (const headers of [{}, { 'content-length': '0' }, { 'content-type': 'text/plain' }, { accept: '*/*' }]) {
        assert.equal(await ask({ ...headers }), 415, `${name} ${JSON.stringify(headers)}`)
      }
      assert.equal(await client.state(id), before, name)
      assert.ok(requestBody !== undefined, `${name} says nothing of a body`)
      const header = parameters?.find((parameter) => parameter.name === 'x-requested-with')
      // A client that is made of the document sends it.
      const says = header?.required ?? false
      assert.equal(says, !requestBody.required, name)
      if (requestBody.required) continue
      assert.equal(await ask({ 'x-requested-with': '' }), 200, name)
      // It pushes another job.
      if (name !== 'runSchedule') assert.notEqual(await client.state(id), before, name)
      for (const headers of [{ prefer: 'wait=0' }, JSON_TYPE, { 'content-type': 'application/msgpack' }]) {
        assert.notEqual(await ask(headers), 415, `${name} ${JSON.stringify(headers)}`)
      }
    }
  },
)

const targetOf = (path: string, queue: string, id: string): string =>
  path.replace('{queue}', queue).replace('{name}', queue).replace('{id}', id)

/** Beside a schedule of the queue's name. */
async function jobIn(client: Client, queue: string, state: string): Promise<string> {
  await client.post('/v1/schedules', { name: queue, when: '@yearly', queue, data: 1 })
  const id = await client.push(queue, 'data')
  if (state === 'waiting') return id
  const fence = (await client.claim(queue)).find((job) => job.id === id)?.fence
  if (state === 'done') await client.post(`/v1/queues/${queue}/jobs/${id}/complete`, { fence, result: 1 })
  if (state === 'dead') await client.post(`/v1/queues/${queue}/jobs/${id}/fail`, { fence, retry: false })
  return id
}

/** The document names the headers that each such answer has. */
function hasItsHeaders({ operationId, responses }: Operation, { status, headers }: Answered): void {
  for (const [name, { required }] of Object.entries(responses[status]?.headers ?? {})) {
    assert.ok(!required || headers.has(name), `${operationId} ${status} lacks ${name}`)
  }
}

function asItSays(
  document: Document,
  { operationId, responses }: Operation,
  { status, headers, body }: Answered,
): void {
  hasItsHeaders({ operationId, responses }, { status, headers, body })
  const said = responses[status]
  assert.ok(said !== undefined, `${operationId} answered ${status}: ${JSON.stringify(body)}`)
  const type = headers.get('content-type')?.replace(/;.*/, '')
  if (type === undefined) return
  const content = said.content?.[type]
  assert.ok(content !== undefined, `${operationId} ${status} ${type}`)
  if (type === 'text/plain') return
  const schema = resolved(content.schema, document) as Schema
  assert.deepEqual(check(body, schema), [], `${operationId} ${status}: ${JSON.stringify(body)}`)
}

test('the checker of schemas: what fits and what does not', () => {
  const cases: [Schema, unknown[], unknown[]][] = [
    [{ type: 'number', exclusiveMinimum: 0, maximum: 1 }, [0.001, 1], [0, -1, 1.1]],
    [{ type: ['object', 'string'], pattern: '^a$', required: ['b'] }, ['a', { b: 1 }], ['b', {}, null, 1]],
    [{ type: 'integer', minimum: 1, maximum: 3 }, [1, 3, 2.0], [0, 4, 1.5, '1', null, 1n, Number.NaN]],
    [{ type: ['integer', 'null'] }, [null, 0], [undefined, 'x', {}]],
    [{ type: 'string', minLength: 1, maxLength: 2 }, ['a', '🦆🦆'], ['', '🦆🦆🦆', 'abc', 1, new Uint8Array(1)]],
    [{ type: 'string', pattern: '^[a-c]+$' }, ['abc'], ['abcd', '', 'a\n']],
    [{ type: 'string', format: 'uuid' }, [UNKNOWN, UNKNOWN.toUpperCase()], ['', `${UNKNOWN}\n`, UNKNOWN.slice(1)]],
    [
      { type: 'string', format: 'date-time' },
      [
        ...['2030-01-01T00:00:00Z', '2016-12-31t23:59:60.5+00:00', '2028-02-29T00:00:00Z', '0000-02-29T00:00:00Z'],
        ...['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59+00:01'],
      ],
      [
        ...['2030-01-01', '2030-01-01 00:00:00Z', '2030-13-01T00:00:00Z', '2030-01-01T25:00:00Z'],
        ...['2030-01-01T24:00:00Z', '2030-01-01T00:60:00Z', '2030-04-31T00:00:00Z', '2029-02-29T00:00:00Z'],
        ...['2030-01-01T00:00:00+24:00', '2030-01-00T00:00:00Z', '2030-00-01T00:00:00Z', '2030-01-01T00:00:61Z'],
        // After the year 9999, be it in UTC alone.
        ...['+010000-01-01T00:00:00Z', '10000-01-01T00:00:00Z', '9999-12-31T23:59:60Z', '9999-12-31T23:59:59-00:01'],
      ],
    ],
    [{ type: 'array', items: { type: 'boolean' }, maxItems: 1 }, [[], [true]], [[1], [true, true], {}]],
    [
      { type: 'object', required: ['a'] },
      [{ a: undefined }, { a: 1, b: 2 }],
      [{}, [], null, { b: 1 }, new Uint8Array(1)],
    ],
    [
      { type: 'object', properties: { a: {} }, additionalProperties: false },
      [{}, { a: 1 }],
      [{ b: 1 }, { toString: 1 }],
    ],
    [{ anyOf: [{ type: 'null' }, { enum: ['x'] }] }, [null, 'x'], ['y', 0]],
    [{ not: { required: ['a', 'b'], type: 'object' } }, [{ a: 1 }, {}], [{ a: 1, b: 1 }]],
  ]
  for (const [schema, good, bad] of cases) {
    for (const value of good) assert.deepEqual(check(value, schema), [], `${JSON.stringify(schema)} ${inspect(value)}`)
    for (const value of bad)
      assert.notDeepEqual(check(value, schema), [], `${JSON.stringify(schema)} ${inspect(value)}`)
  }
})
