/** `millpond mcp`, spoken to as an agent does. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { run } from '../../src/cli/run.ts'
import { Millpond } from '../../src/index.ts'
import { ACTIONS_QUEUE } from '../../src/pond/actions.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

interface Answer {
  id: number | string | null
  result?: { content?: { text: string }[]; isError?: boolean; tools?: ToolShown[]; [member: string]: unknown }
  error?: { code: number; message: string }
}
interface ToolShown {
  name: string
  inputSchema: { properties: Record<string, unknown>; required: string[] }
  annotations: Record<string, boolean>
}

/** A server on a store with one queue. */
async function agentOn(t: TestContext, ...options: string[]) {
  const url = `sqlite:${join(scratch(t), 'jobs.db')}`
  const pond = await Millpond.open(url)
  await pond.queue('mails').pushMany([{ to: 'secret@example.org' }, 2, 3], { group: 'tenant-7' })
  await pond.close()
  const input = new PassThrough({ encoding: 'utf8' })
  const answers: Answer[] = []
  let stderr = ''
  const terminal = {
    env: { MILLPOND_STORE: url },
    out: (text: string) => {
      for (const line of text.split('\n')) if (line !== '') answers.push(JSON.parse(line))
    },
    err: (text: string) => {
      stderr += text
    },
    input: () => input,
  }
  const ended = run(['mcp', ...options], terminal, new AbortController().signal)
  const close = async () => {
    input.end()
    return ended
  }
  after(t, close)
  let next = 0
  const send = (message: unknown) => input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  const ask = async (method: string, params: object = {}): Promise<Answer> => {
    const id = ++next
    send({ jsonrpc: '2.0', id, method, params })
    await until(() => answers.some((answer) => answer.id === id), method)
    const answer = answers.find((one) => one.id === id)
    assert.ok(answer)
    return answer
  }
  const call = async (name: string, given: object = {}) => {
    const { result } = await ask('tools/call', { name, arguments: given })
    return { text: result?.content?.[0]?.text ?? '', isError: result?.isError }
  }
  return { ask, call, send, close, answers, errors: () => stderr }
}

test('it introduces itself, answers pings, and refuses what is no message', async (t) => {
  const { ask, send, answers, close } = await agentOn(t)
  const hello = await ask('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  })
  assert.equal(hello.result?.protocolVersion, '2025-06-18')
  assert.deepEqual(hello.result?.capabilities, { tools: {} })
  assert.match(String(hello.result?.instructions), /This server only reads/)
  send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  assert.deepEqual((await ask('ping')).result, {})
  assert.equal((await ask('initialize', { protocolVersion: '1999-01-01' })).result?.protocolVersion, '2025-11-25')
  assert.equal((await ask('resources/list')).error?.code, -32601)
  assert.equal((await ask('tools/call', { name: 'remove', arguments: {} })).error?.code, -32602)
  send('{broken')
  send({ id: 5 })
  await until(() => answers.filter(({ id }) => id === null).length === 2)
  assert.deepEqual(
    answers.flatMap(({ error, id }) => (id === null ? [error?.code] : [])),
    [-32700, -32600],
  )
  assert.equal(await close(), 0)
})

test('without --allow-changes every tool only reads, and none shows a payload', async (t) => {
  const { ask, call } = await agentOn(t)
  const tools = (await ask('tools/list')).result?.tools ?? []
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['stats', 'explain', 'jobs', 'job', 'workers', 'plan', 'doctor', 'settings', 'schedules'],
  )
  for (const { name, annotations, inputSchema } of tools) {
    assert.deepEqual([annotations.readOnlyHint, annotations.destructiveHint], [true, false], name)
    assert.equal('data' in inputSchema.properties, name === 'push' || name === 'update', `data of ${name} is no filter`)
    for (const hidden of ['store', 'json', 'payloads', 'text']) assert.ok(!(hidden in inputSchema.properties), name)
  }
  const { text } = await call('jobs', { queue: 'mails', limit: 5, group: 'tenant-7' })
  const jobs = text.split('\n').map((line) => JSON.parse(line))
  assert.deepEqual([jobs.length, jobs[0].group], [3, 'tenant-7'])
  for (const [name, given] of [
    ['stats', {}],
    ['jobs', { queue: 'mails' }],
    ['job', { id: jobs[0].id }],
    ['explain', { id_or_queue: 'mails' }],
    ['settings', { queue: 'mails' }],
    ['doctor', {}],
    ['plan', { queue: 'mails' }],
    ['workers', {}],
    ['schedules', {}],
  ] as const) {
    const answer = await call(name, given)
    assert.equal(answer.isError, false, `${name}: ${answer.text}`)
    assert.doesNotMatch(answer.text, /secret/)
  }
  assert.match((await call('explain', { id_or_queue: 'mails' })).text, /no worker has ever asked/)
  for (const given of [
    { queue: 'mails', payloads: true },
    { queue: 'mails', text: 'secret' },
    { queue: 'mails', store: 'memory:' },
  ]) {
    const refused = await call('jobs', given)
    assert.deepEqual([refused.isError, /there is no argument/.test(refused.text)], [true, true])
  }
  assert.match((await call('settings', { queue: 'mails', running: '5' })).text, /there is no argument "running"/)
  assert.match((await call('schedules', { action: 'remove', name: ['s'] })).text, /there is no argument "action"/)
})

test('with --allow-changes an agent steers; many jobs are cancelled and removed only with yes', async (t) => {
  const { ask, call } = await agentOn(t, '--allow-changes', '--payloads')
  const tools = new Map((await ask('tools/list')).result?.tools?.map((tool) => [tool.name, tool.annotations]))
  assert.deepEqual(
    ['requeue', 'limits', 'promote', 'remove', 'cancel', 'pause'].map((name) => [
      tools.get(name)?.readOnlyHint,
      tools.get(name)?.destructiveHint,
    ]),
    [...Array.from({ length: 5 }, () => [false, true]), [false, false]],
  )
  assert.match((await call('jobs', { queue: 'mails', payloads: true })).text, /secret@example\.org/)
  assert.equal((await call('pause', { queue: ['mails'] })).isError, false)
  assert.match((await call('explain', { id_or_queue: 'mails' })).text, /"paused"|is paused/)
  await call('limits', { queue: 'mails', running: 7 })
  for (const [name, given] of [
    ['limits', { queue: 'mails', 'keep-dead': '0s' }],
    ['cancel', { queue: 'mails' }],
  ] as const) {
    assert.match((await call(name, given)).text, /give --yes/, name)
  }
  assert.match((await call('settings', { queue: 'mails' })).text, /"name":"running","value":7,"by":"operator"/)
  assert.deepEqual([tools.get('schedules')?.readOnlyHint, tools.get('schedules')?.destructiveHint], [false, true])
  const unknown = await call('schedules', { action: 'pause', name: ['nightly'] })
  assert.deepEqual([unknown.isError, /has no schedule "nightly"/.test(unknown.text)], [true, true])
  const misspelt = await call('pause', { queue: ['mials'] })
  assert.deepEqual([misspelt.isError, /did you mean mails/.test(misspelt.text)], [true, true])
  // What an agent did stays told.
  const { text: entry } = await call('jobs', { queue: ACTIONS_QUEUE, limit: 1 })
  for (const [name, given] of [
    ['remove', { queue: ACTIONS_QUEUE, 'whole-queue': true, yes: true }],
    ['remove', { queue: ACTIONS_QUEUE, state: 'done', yes: true }],
    ['remove', { id: [JSON.parse(entry).id] }],
    ['limits', { queue: [[ACTIONS_QUEUE]], 'keep-done': '0' }],
    ['push', { queue: ACTIONS_QUEUE, data: '{}' }],
  ] as const) {
    const refused = await call(name, given)
    assert.deepEqual([refused.isError, /log of actions/.test(refused.text)], [true, true], `${name}: ${refused.text}`)
  }
  // An operand that looks like an option is none.
  assert.equal((await call('push', { queue: 'mails', data: '--new' })).isError, true)
  assert.equal((await call('push', { queue: 'mails', data: '{"to":"bob"}', priority: 9 })).isError, false)
  assert.match((await call('stats', { queue: 'mails' })).text, /"waiting":4/)
})
