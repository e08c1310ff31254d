/** Who sees and does what. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ActionEvent, DashboardOptions, Rights } from '../../src/dashboard/index.ts'
import { dashboard } from '../../src/dashboard/index.ts'
import { matches } from '../../src/dashboard/rights.ts'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { ALL, firstTick, startDashboard } from './fixture.ts'

async function pondOf(t: TestContext): Promise<Millpond> {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  return pond
}

/** Rights as the header of a request says, as a host application might keep them in a session. */
const byHeader: DashboardOptions = {
  rights: (request) => JSON.parse(request.headers.get('x-rights') ?? 'null') as Rights | null,
}
const as = (rights: Rights) => ({ 'x-rights': JSON.stringify(rights) })

test('patterns of queues', () => {
  for (const [pattern, name, fits] of [
    ['emails', 'emails', true],
    ['emails', 'emails2', false],
    ['emails*', 'emails2', true],
    ['*', '', true],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'abc', true],
    ['a*bc*bc', 'abc', false],
    ['*/daily', 'reports/daily', true],
    ['*/daily', 'daily', false],
    ['a.c', 'abc', false],
  ] as const) {
    assert.equal(matches(pattern, name), fits, `${pattern} ${name}`)
  }
})

test('it must be said who may use it', async (t) => {
  const pond = await pondOf(t)
  for (const options of [undefined, {}, { tokens: [] }, { redact: ['a'] }] as DashboardOptions[]) {
    assert.throws(() => dashboard(pond, options), /say who may use it/)
  }
  assert.throws(() => dashboard(pond, { tokens: [{ token: 'short' }] }), /16 characters/)
  assert.throws(
    () => dashboard(pond, { tokens: [{ token: 'x'.repeat(16), operater: true } as never] }),
    /as rights have it/,
  )
  assert.throws(() => dashboard(pond, { rights: 'local', redact: ['a..b'] }), /redact takes paths/)
  assert.throws(() => dashboard({} as never, { rights: 'local' }), /takes a pond/)
})

test('a queue that may not be viewed does not exist, and an action needs its right', async (t) => {
  const pond = await pondOf(t)
  const { id: mine } = await pond.queue('mine').push({ secret: 'canary-1' })
  const { id: other } = await pond.queue('other').push({ secret: 'canary-2' })
  const { ask, base } = await startDashboard(t, pond, byHeader)
  const viewer = as({ viewer: ['mine'] })
  const operator = as({ viewer: ['m*'], operator: ['m*'], payloads: ['m*'] })

  const tick = await firstTick(base, viewer)
  assert.deepEqual(
    tick.stores[0].queues.map(({ name, may }: { name: string; may: object }) => [name, may]),
    [['mine', { operate: false, payloads: false }]],
  )
  assert.ok(!JSON.stringify(tick).includes('other'))

  const search = { state: 'waiting' }
  const calls: [name: string, body: (queue: string, id: string) => object, isAction: boolean][] = [
    ['queue', (queue) => ({ queue }), false],
    ['jobs', (queue) => ({ queue, state: 'waiting' }), false],
    ['job', (_, id) => ({ id }), false],
    ['pause', (queue) => ({ queue }), true],
    ['resume', (queue) => ({ queue }), true],
    ['override', (queue) => ({ queue, settings: { limits: { running: 3 } } }), true],
    ['clear', (queue) => ({ queue, names: ['running'] }), true],
    ['limitGroup', (queue) => ({ queue, group: 'a', limits: { running: 1 } }), true],
    ['bulk', (queue) => ({ queue, action: 'cancel', search, preview: true }), true],
    ['update', (_, id) => ({ id, change: { priority: 7 } }), true],
    ['cancel', (_, id) => ({ id }), true],
    ['requeue', (_, id) => ({ id }), true],
    ['bulk', (queue) => ({ queue, action: 'remove', search: { state: 'dead' } }), true],
    ['remove', (_, id) => ({ id }), true],
  ]
  for (const [name, body, isAction] of calls) {
    for (const rights of [viewer, operator]) {
      const hidden = await ask(name, body('other', other), rights)
      const unknown = await ask(name, body('unheard', '01a214d3-a796-76d6-a953-f86a16000bdf'), rights)
      assert.deepEqual([hidden.status, hidden.text], [404, unknown.text], `${name}: hidden as what does not exist`)
    }
    if (!isAction) continue
    const refused = await ask(name, body('mine', mine), viewer)
    assert.equal(refused.status, 403, `${name}: ${refused.text}`)
  }
  assert.equal((await pond.job(mine))?.state, 'waiting')
  for (const [name, body] of calls) {
    const done = await ask(name, body('mine', mine), operator)
    assert.equal(done.status, 200, `${name}: ${done.text}`)
  }
  assert.equal(await pond.job(mine), undefined)
  assert.equal((await pond.job(other))?.state, 'waiting')
})

test('without the right to see payloads there are none, nor any way to guess them', async (t) => {
  const pond = await pondOf(t)
  const queue = pond.queue('secrets', { retry: { attempts: 1 } })
  const died = Promise.withResolvers<void>()
  pond.on('dead', () => died.resolve())
  const { id } = await queue.push({ secret: 'canary-data' })
  queue.work((_, ctx) => {
    ctx.log('canary-log')
    throw new Error('canary-error')
  })
  await died.promise
  const { ask } = await startDashboard(t, pond, byHeader)
  const blind = as({ operator: true })
  for (const [name, body] of [
    ['job', { id }],
    ['jobs', { queue: 'secrets', state: 'dead' }],
    ['queue', { queue: 'secrets' }],
    ['bulk', { queue: 'secrets', action: 'requeue', search: { state: 'dead' }, preview: true }],
  ] as const) {
    const { status, text } = await ask(name, body, blind)
    assert.equal(status, 200, text)
    assert.doesNotMatch(text, /canary/)
  }
  const place = { path: ['secret'], value: 'canary-data' }
  assert.doesNotMatch((await ask('jobs', { queue: 'secrets', state: 'dead' }, blind)).text, /"secret"/)
  assert.equal((await ask('jobs', { queue: 'secrets', state: 'dead', data: place }, as(ALL))).body.jobs.length, 1)
  for (const filter of [{ text: 'canary' }, { errorText: 'canary' }, { data: place }]) {
    for (const name of ['jobs', 'count']) {
      assert.equal((await ask(name, { queue: 'secrets', state: 'dead', ...filter }, blind)).status, 403)
    }
    const search = { state: 'dead', ...filter }
    for (const preview of [true, false]) {
      assert.equal((await ask('bulk', { queue: 'secrets', action: 'requeue', search, preview }, blind)).status, 403)
    }
  }
  assert.equal((await ask('update', { id, change: { data: {} } }, blind)).status, 403)
  const { text } = await ask('job', { id }, as({ payloads: true }))
  for (const word of ['data', 'log', 'error']) assert.ok(text.includes(`canary-${word}`), word)
})

test('redacted paths are hidden from everybody, and not searched or edited', async (t) => {
  const pond = await pondOf(t)
  const { id } = await pond
    .queue('cards')
    .push({ card: { number: 'canary' }, list: [{ password: 'canary' }], shown: 'seen' })
  const { ask } = await startDashboard(t, pond, {
    rights: () => ({ operator: true, payloads: true }),
    redact: ['data.card.number', '**.password'],
  })
  const { text } = await ask('job', { id })
  assert.doesNotMatch(text, /canary/)
  assert.match(text, /seen/)
  assert.equal((await ask('jobs', { queue: 'cards', state: 'waiting', text: 'canary' })).status, 403)
  for (const [path, status] of [
    [['card', 'number'], 403],
    [['card', 'number', 'part'], 403],
    [['password'], 403],
    [['deep', 'password'], 403],
    [['card', 'holder'], 200],
    [['shown'], 200],
  ] as const) {
    const search = { state: 'waiting', data: { path, value: 'canary' } }
    assert.equal((await ask('jobs', { queue: 'cards', ...search })).status, status, path.join('.'))
    const bulk = await ask('bulk', { queue: 'cards', action: 'cancel', search, preview: true })
    assert.equal(bulk.status, status, path.join('.'))
  }
  const { body } = await ask('jobs', { queue: 'cards', state: 'waiting' })
  assert.deepEqual(body.places, ['shown'])
  assert.equal((await ask('update', { id, change: { data: { card: 1 } } })).status, 403)
  assert.equal((await ask('update', { id, change: { priority: 1 } })).status, 200)
})

test('each action is told of: who, what, how many', async (t) => {
  const pond = await pondOf(t)
  const queue = pond.queue('told')
  const ids = []
  for (let n = 0; n < 3; n++) ids.push((await queue.push({ n })).id)
  const [events, heard]: [ActionEvent[], ActionEvent[]] = [[], []]
  pond.on('action', (event) => events.push(event))
  const { ask } = await startDashboard(t, pond, {
    rights: () => ({ who: 'ada', operator: true }),
    onAction: (event) => heard.push(event),
  })
  await ask('pause', { queue: 'told' })
  await ask('cancel', { id: ids[0] })
  await ask('bulk', { queue: 'told', action: 'cancel', search: { state: 'waiting' } })
  await ask('cancel', { id: ids[0] })
  const by = { who: 'ada', through: 'dashboard', queue: 'told' }
  assert.deepEqual(events, [
    { ...by, action: 'pause', count: 1 },
    { ...by, action: 'cancel', count: 1, id: ids[0] },
    { ...by, action: 'cancelAll', count: 2, detail: 'state: waiting' },
  ])
  assert.deepEqual(heard, events)
})

test('a token opens it by a header, or by a cookie that scripts cannot read', async (t) => {
  const pond = await pondOf(t)
  await pond.queue('emails').push({})
  const [writing, reading] = ['w'.repeat(16), 'r'.repeat(16)]
  const { ask, base } = await startDashboard(t, pond, {
    tokens: [{ token: writing, operator: true, who: 'ops' }, { token: reading }],
  })
  assert.equal((await fetch(base)).status, 200)
  assert.equal((await ask('queue', { queue: 'emails' })).status, 401)
  assert.equal((await fetch(`${base}events`)).status, 401)
  assert.equal((await ask('queue', { queue: 'emails' }, { authorization: `Bearer ${reading}` })).status, 200)
  assert.equal((await ask('pause', { queue: 'emails' }, { authorization: `Bearer ${reading}` })).status, 403)
  assert.equal((await ask('pause', { queue: 'emails' }, { authorization: `Bearer ${writing}` })).status, 200)
  assert.equal((await ask('login', { token: 'x'.repeat(16) })).status, 401)
  const login = await fetch(`${base}api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: writing }),
  })
  const cookie = login.headers.get('set-cookie') ?? ''
  assert.match(cookie, /^millpond=\d{13}\.[\w-]{43}; Path=\/ops\/queues\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  assert.ok(!cookie.includes(writing))
  const [pair = ''] = cookie.split(';')
  assert.equal((await ask('resume', { queue: 'emails' }, { cookie: pair })).status, 200)
  assert.equal((await firstTick(base, { cookie: pair })).who, 'ops')
  const [, end = '', signature = ''] = /=(\d+)\.(.*)/.exec(pair) ?? []
  for (const forged of [
    `${Number(end) + 1}.${signature}`,
    `${end}.${signature.slice(1)}A`,
    `${Date.now() - 1}.${signature}`,
  ]) {
    assert.equal((await ask('queue', { queue: 'emails' }, { cookie: `millpond=${forged}` })).status, 401)
  }
})

test('a hook may answer itself; one that fails or gives nonsense opens nothing', async (t) => {
  const pond = await pondOf(t)
  await pond.queue('emails').push({})
  let verdict: () => never = () => Response.redirect('https://login.example.org/') as never
  const errors: unknown[] = []
  const { base, ask } = await startDashboard(t, pond, {
    rights: () => verdict(),
    onError: (error) => errors.push(error),
  })
  const response = await fetch(base, { redirect: 'manual' })
  assert.deepEqual([response.status, response.headers.get('location')], [302, 'https://login.example.org/'])
  for (const [given, status] of [
    [undefined, 403],
    [false, 403],
    [true, 500],
    [{ operators: true }, 500],
    [{ viewer: 'emails' }, 500],
  ] as const) {
    verdict = () => given as never
    assert.equal((await ask('queue', { queue: 'emails' })).status, status, JSON.stringify(given))
    assert.equal((await fetch(base)).status, status)
    assert.equal((await fetch(`${base}events`)).status, status)
  }
  verdict = () => {
    throw new Error('the database is away')
  }
  assert.equal((await ask('queue', { queue: 'emails' })).status, 500)
  assert.ok(errors.length > 0)
})

test("'local' answers this machine alone", async (t) => {
  const pond = await pondOf(t)
  await pond.queue('emails').push({})
  const { ask } = await startDashboard(t, pond, { rights: 'local' })
  assert.equal((await ask('queue', { queue: 'emails' })).status, 200)
  for (const headers of [{ 'x-forwarded-for': '192.0.2.1' }, { forwarded: 'for=192.0.2.1' }]) {
    assert.equal((await ask('queue', { queue: 'emails' }, headers)).status, 403)
  }
  const far = dashboard(pond, { rights: 'local' })
  const body = JSON.stringify({ queue: 'emails' })
  for (const host of ['evil.example', 'localhost']) {
    const headers = { 'content-type': 'application/json', host }
    const request = new Request(`http://${host}/api/queue`, { method: 'POST', headers, body })
    assert.equal((await far(request)).status, 403, host)
  }
})
