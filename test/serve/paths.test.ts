/** Paths in another spelling than a check in front would look for. */
import assert from 'node:assert/strict'
import { exchange } from '../web/serving.ts'
import { isProblem, serveTest } from './client.ts'

const TARGETS = [
  '/v1/queues/x/../secret/jobs',
  '/v1/queues/x/%2e%2e/secret/jobs',
  '/v1/queues\\secret/jobs',
  '/v1/queues/%73ecret/jobs',
  '/v1/queues/%73%65%63%72%65%74/jobs',
  '/v1/%71ueues/secret/jobs',
  '/v1/queues/secret/jobs#/v1/queues/public',
  '/v1/queues/sec\tret/jobs',
  'http://localhost/v1/queues/secret/jobs',
  '//v1/queues/secret/jobs',
  '/v1//queues/secret/jobs',
  '/v1/queues/secret/jobs/',
  '/V1/queues/secret/jobs',
]

serveTest('a queue is reached under its own path alone', async ({ open, listen }) => {
  const client = await open()
  await client.push('secret', 'payload')
  const { origin } = await listen(client)
  const ask = (target: string, method = 'GET') => {
    return exchange(origin, `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  }
  assert.match(await ask('/v1/queues/secret/jobs?state=waiting'), /payload/)
  for (const target of TARGETS) {
    for (const path of [target, target.replace(/jobs(?=\/?$|#)/, 'jobs?state=waiting')]) {
      const heard = await ask(path)
      assert.match(heard, /^HTTP\/1\.1 4(?:0[04]|22) /, path)
      assert.doesNotMatch(heard, /payload/, path)
    }
    assert.match(await ask(target, 'POST'), /^HTTP\/1\.1 4/, target)
  }
  const { counts } = (await client.get('/v1/queues/secret')).body
  assert.deepEqual(Object(counts).waiting, 1)
})

serveTest(
  'letters, digits and -._~ that are percent-encoded are refused, other characters are not',
  async ({ open }) => {
    const client = await open()
    const encoded = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`
    for (const character of 'abcxyzABCXYZ0189-._~') {
      for (const code of [encoded(character), encoded(character).toUpperCase()]) {
        isProblem(await client.get(`/v1/queues/q${code}`), 400, 'InvalidPath')
      }
    }
    for (const character of '@[`{+,!$') {
      isProblem(await client.get(`/v1/queues/q${encoded(character)}`), 400, 'InvalidName')
    }
    await client.push('a/b:c', 1)
    for (const spelling of ['a%2Fb%3ac', 'a%2fb:c']) {
      assert.equal((await client.get(`/v1/queues/${spelling}`)).body.queue, 'a/b:c')
    }
  },
)
