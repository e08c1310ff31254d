/** What the SQL stores keep of an error, and what stands for one that another program has spoilt. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Millpond } from '../../src/pond/millpond.ts'
import { storedErrorFromJson } from '../../src/stores/stored-error.ts'

test('an error comes back as it was kept', () => {
  const error = { code: 'HandlerFailed', name: 'Error', message: 'm', stack: 's' }
  assert.deepEqual(storedErrorFromJson(JSON.stringify(error)), error)
  const { stack: _, ...bare } = error
  assert.deepEqual(storedErrorFromJson(JSON.stringify({ ...bare, more: 1 })), bare)
})

test('whatever else is kept is told as unreadable', () => {
  for (const kept of ['', '{', 'null', '[]', '{"code":1}', '"text"', 7, Uint8Array.of(1)])
    assert.equal(storedErrorFromJson(kept).code, 'PayloadNotDecodable', String(kept))
})

test('a job whose error is spoilt is listed all the same', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-error-'))
  const path = join(folder, 'test.db')
  const pond = await Millpond.open(`sqlite:${path}?sync=normal`)
  try {
    const queue = pond.queue('q')
    const { id } = await queue.push(1)
    const other = new DatabaseSync(path)
    other.prepare('update millpond_jobs set error = ? where id = ?').run('{"co', id)
    other.close()
    const [job] = await queue.jobs('waiting')
    assert.deepEqual([job?.id, job?.error?.code], [id, 'PayloadNotDecodable'])
  } finally {
    await pond.close()
    rmSync(folder, { recursive: true })
  }
})
