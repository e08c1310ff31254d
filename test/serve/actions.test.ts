/** What is changed over HTTP is in the log of actions: gathered for some seconds, and written at the latest when the service closes. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { ACTIONS_QUEUE } from '../../src/pond/actions.ts'
import { serve } from '../../src/serve/index.ts'
import { scratch, after as undo } from '../support/cleaning.ts'

const TOKEN = 'a-token-of-some-length'

test('every change over HTTP, by token and queue', async (t) => {
  const url = `sqlite:${join(scratch(t), 'jobs.db')}?sync=normal`
  const service = await serve(url, { tokens: ['another-token-of-some-length', TOKEN] })
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', 'x-requested-with': 'test' }
    const request = new Request(`http://127.0.0.1${path}`, {
      ...{ method, headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const response = await service.handle(request)
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`)
    return (await response.json()) as { id: string }
  }
  const push = async () => (await ask('POST', '/v1/queues/q/jobs', { data: { secret: 'canary' } })).id
  const ids = [await push(), await push(), await push(), await push()]
  await ask('PATCH', `/v1/jobs/${ids[0]}`, { priority: 7, data: 'canary' })
  for (const id of ids.slice(0, 2)) await ask('DELETE', `/v1/jobs/${id}`)
  await ask('POST', `/v1/jobs/${ids[0]}/requeue`, {})
  await ask('POST', '/v1/queues/q/changes', { action: 'cancel', text: 'canary', dryRun: true })
  await ask('POST', '/v1/queues/q/changes', { action: 'cancel', text: 'canary', limit: 1 })
  await ask('POST', '/v1/queues/q/changes', { action: 'cancel', text: 'canary' })
  await ask('POST', '/v1/queues/q/changes', { action: 'requeue', state: 'cancelled', limit: 1 })
  await ask('PATCH', '/v1/queues/q', { paused: true })
  await ask('PATCH', '/v1/queues/q', { attempts: 3 })
  await ask('PATCH', '/v1/queues/q', { attempts: 3, by: 'code' })
  await ask('PATCH', '/v1/queues/q/groups', { group: 'a', running: 1 })
  await ask('POST', '/v1/schedules', { name: 'daily', when: '@daily', queue: 'q', data: null })
  await ask('PATCH', '/v1/schedules/daily', { paused: true })
  await ask('POST', '/v1/schedules/daily/run', {})
  await ask('DELETE', '/v1/schedules/daily')
  await ask('DELETE', `/v1/queues/q/jobs/${ids[0]}`)
  await ask('DELETE', '/v1/queues/q')
  service.stop()
  await service.close()
  const pond = await Millpond.open(url)
  undo(t, () => pond.close({ timeout: 100 }))
  const entries = await pond.queue(ACTIONS_QUEUE).jobs('done')
  assert.doesNotMatch(JSON.stringify(entries), /canary|a-token/)
  const told = entries.map(({ data }) => data as Record<string, unknown>)
  const by = { who: 'token 2, unknown', through: 'http', queue: 'q', count: 1 }
  const sorted = (all: object[]) => all.map((one) => JSON.stringify(one, Object.keys(one).sort())).sort()
  const run = told.find(({ action }) => action === 'runSchedule')
  assert.deepEqual(
    sorted(told),
    sorted([
      { ...by, action: 'update', id: ids[0] },
      { ...by, action: 'cancel', count: 2 },
      { ...by, action: 'requeue', id: ids[0] },
      // Two steps of one change.
      { ...by, action: 'cancelAll', count: 3, detail: 'data: …' },
      { ...by, action: 'requeueAll', detail: 'state: cancelled' },
      { ...by, action: 'pause' },
      { ...by, action: 'override', settings: ['attempts'] },
      { ...by, action: 'limitGroup', group: 'a' },
      { ...by, action: 'pauseSchedule', schedule: 'daily' },
      { ...by, action: 'runSchedule', schedule: 'daily', id: run?.id },
      { ...by, action: 'removeSchedule', schedule: 'daily' },
      { ...by, action: 'remove', id: ids[0] },
      { ...by, action: 'removeQueue', count: 4 },
    ]),
  )
})
