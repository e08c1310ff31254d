/** Clients that are older than what `peerDependencies` takes, as package managers other than npm may install them all the same. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Millpond } from '../../src/index.ts'

const INDEX = new URL('../../src/index.ts', import.meta.url).href

/** The code and message of opening the URL where `import(name)` brings this module. */
async function refusal(url: string, name: string, module: string): Promise<string> {
  const code = `import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => name === ${JSON.stringify(name)}
      ? { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(module)}`)}, shortCircuit: true }
      : next(name, context) })
    const { Millpond } = await import(${JSON.stringify(INDEX)})
    await Millpond.open(${JSON.stringify(url)}).catch(({ code, message }) => console.log(code + ': ' + message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code])
  return stdout
}

test('ioredis before 5.3 is refused', async () => {
  const said = await refusal(
    'redis://127.0.0.1:1',
    'ioredis',
    'export default class Redis { static Cluster = class {} }',
  )
  assert.equal(said, 'NotSupported: the Redis store needs ioredis 5.3 or later: npm install ioredis@latest\n')
})

test('pg before 8.12 is refused, whether it is ours to open or comes as a Pool', async () => {
  const old = 'class Query { constructor({ text }) { this.text = text } requiresPreparation() {} }'
  const said = await refusal('postgres://127.0.0.1:1/x', 'pg', `${old} export default { Pool: class {}, Query }`)
  assert.equal(
    said,
    'NotSupported: the PostgreSQL store needs pg 8.13 or later, as older ones take several statements for one: npm install pg@latest\n',
  )

  class Query {
    readonly text: string
    constructor({ text }: { text: string }) {
      this.text = text
    }
    requiresPreparation() {}
  }
  const client = { query: () => {}, connect: () => {}, totalCount: 0, Client: { Query } }
  await assert.rejects(Millpond.open('postgres://127.0.0.1:1/x', { client }), { code: 'NotSupported' })
})

test('a client that a bundler put nothing in the place of is called missing', async () => {
  for (const [url, name] of [
    ['redis://127.0.0.1:1', 'ioredis'],
    ['postgres://127.0.0.1:1/x', 'pg'],
  ] as const) {
    assert.match(await refusal(url, name, 'export default {}'), new RegExp(`: npm install ${name}\n$`))
  }
})
