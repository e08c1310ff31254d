/** Sealed payloads are in plain in no file, no raw record and no HTTP answer. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { Service } from '../../src/serve/service.ts'
import { openStore } from '../../src/stores/open.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { assertClean, CANARY, FORMS } from './canary.ts'

test('SQLite: the files, the records and what a service without keys answers', async () => {
  const folder = sharedFolder()
  const url = `sqlite:${join(folder, 'jobs.db')}`
  const pond = await Millpond.open(url, { seal: { keys: [{ id: 'k', key: Buffer.alloc(32, 9) }] } })
  pond.on('dead', () => {})
  const queue = pond.queue('q', { retry: { attempts: 1 } })
  const worker = queue.work((job, ctx) => {
    ctx.progress({ at: CANARY })
    if (job.key === 'fails') throw new Error(CANARY)
    return { done: CANARY, bytes: Buffer.from(CANARY) }
  })
  const good = await queue.push({ to: CANARY, bytes: Buffer.from(CANARY) })
  const bad = await queue.push(CANARY, { key: 'fails' })
  const later = await queue.push(Buffer.from(CANARY), { delay: '1h' })
  await pond.result(good.id)
  await until(async () => (await pond.job(bad.id))?.state === 'dead')
  await worker.close()

  const ids = [good, bad, later].map(({ id }) => id)
  const store = await openStore(url, {})
  for (const record of await store.operations.find({ ids })) {
    assertClean(record, 'a record')
    const bodies = [record?.data, record?.progress, record?.result].map((part) => Buffer.from(part?.body ?? ''))
    assertClean(Buffer.concat(bodies).toString('latin1'), 'its bytes')
  }

  const blind = await Millpond.open(url)
  const service = new Service({ store, pond: blind, limits: LIMITS, tokens: [], hosts: [], onError: assert.fail })
  const paths = [
    ...ids.map((id) => `/v1/jobs/${id}`),
    ...['done', 'dead', 'scheduled'].map((state) => `/v1/queues/q/jobs?state=${state}`),
  ]
  for (const path of paths) {
    const answer = await service.handle(new Request(`http://localhost${path}`))
    assert.equal(answer.status, 200, path)
    assertClean(await answer.text(), path)
  }
  await service.drained()

  const files = readdirSync(folder)
  assert.ok(files.some((file) => file.endsWith('-wal')))
  for (const file of files) {
    const text = readFileSync(join(folder, file)).toString('latin1')
    assert.ok(!FORMS.some((form) => text.includes(form)), file)
  }
  await Promise.all([blind.close(), pond.close(), store.close()])
})
