/** What is changed with the command line, and by agents, is in the log of actions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tools } from '../../src/cli/mcp/tools.ts'
import { run } from '../../src/cli/run.ts'
import { VERBS } from '../../src/cli/verbs/index.ts'
import { Millpond } from '../../src/index.ts'
import { ACTIONS_QUEUE } from '../../src/pond/actions.ts'
import { metrics } from '../../src/web/metrics.ts'
import { after as undo } from '../support/cleaning.ts'
import { ran } from './in-process.ts'
import { freshUrl } from './stores.ts'

test('every verb that changes something', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  undo(t, () => pond.close({ timeout: 100 }))
  const queue = pond.queue('q')
  const ids: string[] = []
  for (let n = 0; n < 6; n++) ids.push((await queue.push({ secret: 'canary' })).id)
  const { id: later } = await queue.push({}, { delay: '1h' })
  await pond.schedule('daily', '@daily', queue, null)
  for (const args of [
    ['pause', 'q'],
    ['resume', 'q'],
    ['cancel', ids[0] ?? '', ids[1] ?? ''],
    ['cancel', '--queue', 'q', '--text', 'canary'],
    ['cancel', '--queue', 'q', '--text', 'canary', '--dry-run'],
    ['jobs', 'q', '--data', 'secret=canary'],
    ['requeue', '--queue', 'q', '--data', 'secret=none', '--yes'],
    ['requeue', ids[0] ?? ''],
    ['requeue', '--queue', 'q', '--state', 'cancelled', '--group', 'none-has-it', '--yes'],
    ['promote', later],
    ['update', later, '--priority', '7'],
    ['update', '--queue', 'q', '--state', 'waiting', '--text', 'canary', '--priority', '6', '--yes'],
    ['limits', 'q', '--running', '3'],
    ['limits', 'q', '--running', '4', '--dry-run'],
    ['limits', 'q', '--clear', 'running'],
    ['limits', 'q', '--group', 'a', '--running', '1'],
    ['limits', 'q'],
    ['schedules', 'pause', 'daily'],
    ['schedules', 'remove', 'daily'],
    ['remove', ids[1] ?? '', '--yes'],
    ['remove', '--queue', 'q', '--whole-queue', '--yes'],
  ]) {
    const { code, err } = await ran([...args, '--store', url])
    const isShown = args[0] === 'cancel' && args.includes('canary') && !args.includes('--dry-run')
    assert.equal(code, isShown ? 3 : 0, `${args.join(' ')}: ${err}`)
  }
  await queue.push({})
  const verbs = () => Promise.all(Object.values(VERBS).map(async (load) => (await load()).verb))
  const tools = await Tools.make({ allowChanges: true, payloads: false }, { MILLPOND_STORE: url }, { verbs, run })
  await tools.call('pause', { queue: ['q'] }, new AbortController().signal)
  const entries = await pond.queue(ACTIONS_QUEUE).jobs('done')
  assert.doesNotMatch(JSON.stringify(entries), /canary/)
  const told = entries.map(({ data }) => {
    const { who, through, queue: of, action, count, ...more } = data as Record<string, unknown>
    assert.match(String(who), /^\S+@\S+$/)
    assert.equal(of, 'q')
    return [through, action, count, more]
  })
  assert.deepEqual(told.reverse(), [
    ['cli', 'pause', 1, {}],
    ['cli', 'resume', 1, {}],
    ['cli', 'cancel', 2, {}],
    ['cli', 'requeue', 1, { id: ids[0] }],
    ['cli', 'promote', 1, { id: later }],
    ['cli', 'update', 1, { id: later }],
    ['cli', 'updateAll', 5, { detail: 'state: waiting, data: …' }],
    ['cli', 'override', 1, { settings: ['limits'], detail: 'running none → 3' }],
    ['cli', 'clear', 1, { settings: ['running'], detail: 'running 3 → none' }],
    ['cli', 'limitGroup', 1, { group: 'a' }],
    ['cli', 'pauseSchedule', 1, { schedule: 'daily' }],
    ['cli', 'removeSchedule', 1, { schedule: 'daily' }],
    ['cli', 'remove', 1, { id: ids[1] }],
    ['cli', 'removeQueue', 6, {}],
    ['mcp', 'pause', 1, {}],
  ])
})

test('its queue is listed nowhere, and shown by its name', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  undo(t, () => pond.close({ timeout: 100 }))
  await pond.queue('q').push(1)
  assert.equal((await ran(['pause', 'q', '--store', url])).code, 0)
  for (const args of [['stats'], ['stats', '--json'], ['top', '--once'], ['explain'], ['doctor', '--all']]) {
    const { out } = await ran([...args, '--store', url])
    assert.doesNotMatch(out, /millpond\.actions/, args.join(' '))
    assert.match(out, /\bq\b/, args.join(' '))
  }
  const named = await ran(['stats', ACTIONS_QUEUE, '--store', url])
  assert.match(named.out, /^done +1$/m)
  assert.equal((await ran(['jobs', ACTIONS_QUEUE, '--store', url])).code, 0)
  const metricsText = await (await metrics(pond)(new Request('http://localhost/metrics'))).text()
  assert.match(metricsText, /^millpond_queues 1$/m)
  assert.doesNotMatch(metricsText, /millpond\.actions/)
  // A move leaves nothing behind.
  const target = freshUrl(t, 'sqlite')
  assert.match((await ran(['move', url, target])).out, /^millpond\.actions .* 1 /m)
  assert.match((await ran(['stats', ACTIONS_QUEUE, '--store', target])).out, /^done +1$/m)
})
