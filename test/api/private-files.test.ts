/** New SQLite files are for their owner alone; the rights of one that is there are left as they are. */
import assert from 'node:assert/strict'
import { chmodSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { sharedFolder } from '../support/cleaning.ts'
import { numbers } from './suite.ts'

const skip = process.platform === 'win32' ? 'Windows has no such rights' : false
const folder = sharedFolder()

const rightsOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** The rights of the file and of those that SQLite keeps beside it, while ponds are at work on it. */
async function rightsAtWork(path: string, ponds = 1): Promise<Record<string, string>> {
  const opened = await Promise.all(numbers(ponds).map(() => Millpond.open(`sqlite:${path}`)))
  await Promise.all(opened.map((pond) => pond.queue<number>('q').push(1)))
  const names = readdirSync(folder).filter((name) => name.startsWith(basename(path)))
  const rights = Object.fromEntries(
    names.map((name) => [name.slice(basename(path).length), rightsOf(join(folder, name))]),
  )
  await Promise.all(opened.map((pond) => pond.close()))
  return rights
}

const all = (rights: string) => ({ '': rights, '-shm': rights, '-wal': rights })

test('a new file is 0600, and so are -wal and -shm, whatever the umask', { skip }, async () => {
  const before = process.umask(0)
  try {
    assert.deepEqual(await rightsAtWork(join(folder, 'new.db')), all('600'))
  } finally {
    process.umask(before)
  }
})

test('so it is where several ponds open it at once', { skip }, async () => {
  for (const round of numbers(5))
    assert.deepEqual(await rightsAtWork(join(folder, `several${round}.db`), 4), all('600'))
})

test('so it is at the end of a link that leads to nothing yet', { skip }, async () => {
  symlinkSync(join(folder, 'target.db'), join(folder, 'link'))
  const pond = await Millpond.open(`sqlite:${join(folder, 'link')}`)
  assert.deepEqual(
    ['', '-wal', '-shm'].map((end) => rightsOf(join(folder, `target.db${end}`))),
    ['600', '600', '600'],
  )
  await pond.close()
})

test('a file that is there keeps its rights, and -wal and -shm get the same', { skip }, async () => {
  for (const rights of [0o640, 0o664, 0o644]) {
    const path = join(folder, `there${rights}.db`)
    writeFileSync(path, '')
    chmodSync(path, rights)
    assert.deepEqual(await rightsAtWork(path), all(rights.toString(8)))
    assert.deepEqual(await rightsAtWork(path), all(rights.toString(8)), 'also the second time')
  }
})
