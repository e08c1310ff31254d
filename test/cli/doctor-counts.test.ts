/** `millpond doctor`: counts that differ from the jobs, and an SQLite file that cannot be written. What it advises makes them right. */
import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { Millpond } from '../../src/index.ts'
import type { Finding } from '../../src/stores/examination.ts'
import { codeBlocks } from '../house/code-blocks.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { server } from '../stores/postgres-fixture.ts'
import { after } from '../support/cleaning.ts'
import { ran } from './in-process.ts'
import { freshUrl, onStores } from './stores.ts'

async function found(url: string, check: string): Promise<Finding[]> {
  const { out, err } = await ran(['doctor', '--json', '--store', url])
  assert.equal(err, '')
  const all: Finding[] = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  return all.filter((one) => one.check === check)
}

/** Of a page of docs, the statement that makes the counts right. */
const mending = (page: string) =>
  codeBlocks().find((one) => one.page === page && /-- counts/.test(one.code))?.code ?? ''

onStores('counts that are other than the jobs are found, and what it says makes them right', async (t, url, kind) => {
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  const queue = pond.queue<number>('mails')
  const { id } = await queue.push(1)
  await queue.push(2, { delay: '1h' })
  await pond.queue('other').push(1)
  assert.deepEqual(
    (await found(url, 'counts')).map(({ level }) => level),
    ['ok'],
  )
  const schema = new URL(url, 'a:').searchParams.get('schema')
  const prefix = new URL(url, 'a:').searchParams.get('prefix')
  const sqlite = (sql: string) => {
    const db = new DatabaseSync(url.slice('sqlite:'.length))
    db.exec(sql)
    db.close()
  }
  const redis = new Redis(serverUrl('redis') ?? '', { lazyConnect: true })
  after(t, () => redis.disconnect())
  if (kind === 'sqlite') sqlite("update millpond_counts set count = 7 where name = 'waiting' and queue = 'mails'")
  else if (kind === 'redis') await redis.hset(`{${prefix}}:mails:queue`, 'waiting', 7)
  else
    await server(`insert into ${schema}.moves (queue, segment, was, becomes, cause, count)
    select id, -1, 'new', 'waiting', 'test', 6 from ${schema}.queues where name = 'mails'`)
  const [wrong, ...others] = await found(url, 'counts')
  assert.deepEqual([wrong?.level, others], ['problem', []])
  assert.match(wrong?.text ?? '', /^mails: 7 waiting jobs are counted, and there (is|are) 1$/)
  if (kind === 'sqlite') sqlite(mending('docs/sqlite.md'))
  else if (kind === 'postgres') await server(mending('docs/postgres.md').replaceAll('millpond.', `${schema}.`))
  else {
    const [, key = '', count = ''] = /HSET (\S+) waiting (\d+)/.exec(wrong?.action ?? '') ?? []
    await redis.hset(key, 'waiting', count)
  }
  assert.deepEqual(
    (await found(url, 'counts')).map(({ level }) => level),
    ['ok'],
  )
  assert.equal((await queue.stats()).counts.waiting, 1)
  await queue.remove([id])
  assert.deepEqual(
    (await found(url, 'counts')).map(({ level }) => level),
    ['ok'],
  )
})

test('redis: jobs that are in no list of their queue', { skip: missingReason('redis') }, async (t) => {
  const url = freshUrl(t, 'redis')
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  await pond.queue('mails').push(1, { delay: '1h' })
  const redis = new Redis(serverUrl('redis') ?? '')
  after(t, () => redis.disconnect())
  await redis.del(`{${new URL(url).searchParams.get('prefix')}}:mails:scheduled`)
  const [wrong] = await found(url, 'counts')
  assert.equal(wrong?.level, 'problem')
  assert.match(wrong?.text ?? '', /^1 jobs are stored, and the lists of the queues have 0$/)
})

test('sqlite: a file that can only be read', {
  skip: process.platform === 'win32' && 'Windows has no such modes',
}, async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  await pond.queue('mails').push(1)
  await pond.close()
  assert.deepEqual(
    (await found(url, 'writes')).map(({ level }) => level),
    ['ok'],
  )
  const file = url.slice('sqlite:'.length)
  chmodSync(file.slice(0, file.lastIndexOf('/')), 0o777)
  chmodSync(file, 0o444)
  await asNobody(async () => {
    const [writes] = await found(url, 'writes')
    assert.equal(writes?.level, 'problem')
    assert.match(writes?.text ?? '', /^the file cannot be written, so it takes no job: /)
    await assert.rejects(Millpond.open(url), {
      code: 'StoreUnavailable',
      message: /file and folder (must both be writable|can be written)/,
    })
  })
})

/** Root may write every file. */
async function asNobody(use: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return use()
  process.seteuid?.(65_534)
  try {
    await use()
  } finally {
    process.seteuid?.(0)
  }
}
