/** What the program says of itself, and of how it was called. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { OPTIONS } from '../../src/cli/serve/settings.ts'
import { UsageError } from '../../src/cli/usage-error.ts'
import { MAIN, millpond } from './fixture.ts'
import { ran, settingsOf } from './in-process.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const TOKEN = 'a-token-of-sixteen'

test('the program itself: help, version, a command that there is not', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.deepEqual(millpond(['--version']), { code: 0, out: `${version}\n`, err: '' })
  const help = millpond(['--help'])
  assert.ok(help.code === 0 && help.out.includes('millpond serve') && help.err === '')
  assert.equal((await ran(['help', 'serve'])).out, (await ran(['serve', '--help'])).out)
  const wrong = millpond(['swim'])
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.match(wrong.err, /^millpond: there is no command "swim"\nSee millpond --help\n$/)
})

test('a word that is nearly right is answered with the right one', async () => {
  assert.match((await ran(['sevre'])).err, /there is no command "sevre"; did you mean serve\?/)
  assert.deepEqual([(await ran(['srv'])).err.includes('did you mean'), (await ran([])).code], [true, 2])
})

test('it can be started by its name', () => {
  assert.match(readFileSync(MAIN, 'utf8'), /^#!\/usr\/bin\/env node\n/)
  const { bin } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(bin.millpond, './dist/cli/main.js')
})

test('the help of serve names every option, and no other', async () => {
  const { code, out } = await ran(['serve', '--help'])
  assert.equal(code, 0)
  const named = new Set(out.match(/(?<=^ {2}--)[a-z-]+/gm))
  const known = Object.keys(OPTIONS)
  assert.ok(known.length >= 15)
  assert.deepEqual([...named].sort(), known.sort())
})

test('bad options end with 2, and say what is wrong without showing secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-cli-'))
  const file = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  const store = ['--store', 'memory:']
  const hook = ['--deliver', 'q=https://example.org/?key=hidden']
  const bad: [args: readonly string[], message: RegExp, env?: Record<string, string>][] = [
    [[], /--store is missing/],
    [['--store', ''], /--store is missing/],
    [['--store', 'mysql://root:hidden@x/y'], /UnknownScheme/],
    [['--store', 'memory:?x=1'], /InvalidOption/],
    [[...store, '--prot', '1'], /there is no option --prot; did you mean --port\?/],
    [[...store, '--elsewhere', 'x'], /there is no option --elsewhere\nSee millpond serve --help\n$/],
    [[...store, 'hidden'], /arguments that belong to no option: 1/],
    [['--store'], /--store needs a value/],
    [[...store, '--json=yes'], /--json takes no value/],
    [[...store, '--port', '99999'], /--port is a whole number from 0 to 65535/],
    [[...store, '--port', '-1'], /port/],
    [[...store, '--long-poll', 'long'], /--long-poll/],
    [[...store, '--max-body', '0'], /--max-body/],
    [[...store, '--max-queues', 'many'], /--max-queues is a whole number from 0 to 1000000/],
    [[...store, '--host', '0.0.0.0'], /can be reached by others/],
    [[...store, '--host', '::'], /can be reached by others/],
    [[...store, '--host', '192.0.2.1'], /can be reached by others/],
    [[...store, '--host', 'no such host'], /no name that is known/],
    [store, /16 characters at least/, { MILLPOND_TOKEN: 'short-hidden' }],
    [store, /visible ASCII/, { MILLPOND_TOKEN: 'a hidden one of many' }],
    [[...store, '--token-file', join(folder, 'missing')], /--token-file: the file cannot be read \(ENOENT\)/],
    [[...store, '--token-file', await file('empty', '\n\n')], /holds no token/],
    [[...store, '--deliver', 'q'], /QUEUE=URL/],
    [[...store, '--deliver', 'q=nowhere'], /QUEUE=URL/],
    [[...store, '--deliver', '%q=https://example.org'], /queue name/],
    [[...store, '--deliver', 'q=http://example.org'], /must be https:/],
    [[...store, '--deliver', 'q=https://u:hidden@example.org'], /holds a password/],
    [[...store, ...hook], /q has no secret/],
    [[...store, ...hook, ...hook], /twice/, { MILLPOND_WEBHOOK_SECRET: SECRET }],
    [[...store, ...hook], /not whsec_/, { MILLPOND_WEBHOOK_SECRET: 'hidden' }],
    [[...store, ...hook, '--webhook-secrets', await file('broken', '{hidden')], /is not JSON/],
    [[...store, ...hook, '--webhook-secrets', await file('list', '["hidden"]')], /is not JSON/],
    [[...store, ...hook, '--webhook-secrets', await file('number', '{"q":1}')], /is not JSON/],
    [[...store, ...hook, '--webhook-secrets', await file('none', '{"q":"whsec_hidden"}')], /not whsec_/],
  ]
  try {
    for (const [args, message, env] of bad) {
      const { code, out, err } = await ran(['serve', ...args], env)
      assert.deepEqual([code, out], [2, ''], `${args.join(' ')}: ${err}`)
      assert.match(err, message)
      assert.doesNotMatch(err, /hidden/)
      assert.match(err, /^millpond: /)
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a port that is taken, and a store that cannot be opened, end with 1', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const address = other.address()
  assert.ok(typeof address === 'object' && address !== null)
  const taken = await ran(['serve', '--store', 'memory:', '--port', String(address.port)])
  assert.deepEqual([taken.code, /EADDRINUSE/.test(taken.err)], [1, true])
  await new Promise((resolve) => other.close(resolve))
  const away = await ran(['serve', '--store', 'sqlite:/no/such/folder/x.db'])
  assert.deepEqual([away.code, /StoreUnavailable/.test(away.err)], [1, true])
})

test('settings: where they come from, and what they are without', async () => {
  const plain = await settingsOf(['--store', 'memory:'], {})
  assert.deepEqual(plain, {
    ...{ store: 'memory:', address: '127.0.0.1', port: 8080, tokens: [], hosts: [], deliveries: [], limits: {} },
    ...{ alerts: undefined, connections: {}, stopTimeout: 30_000, logRequests: false, dashboard: false, json: false },
  })
  const folder = await mkdtemp(join(tmpdir(), 'millpond-cli-'))
  try {
    await writeFile(join(folder, 'tokens'), `${TOKEN}\n\n  another-token-0123  \n`)
    const own = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
    await writeFile(join(folder, 'secrets'), JSON.stringify({ a: own, b: [own, SECRET] }))
    const args = ['--host', '0.0.0.0', '--token-file', join(folder, 'tokens'), '--port=0', '--json']
    const bounds = ['--long-poll', '5s', '--max-queues', '7']
    const hooks = ['a=https://example.org/a', 'b=http://127.0.0.1:1/b', 'c=http://[::1]/c'].flatMap((one) => [
      '--deliver',
      one,
    ])
    const env = {
      MILLPOND_STORE: 'memory:',
      MILLPOND_WEBHOOK_SECRET: `${SECRET} ${own}`,
      MILLPOND_TOKEN: 'ignored-since-a-file',
    }
    const full = await settingsOf([...args, ...bounds, ...hooks, '--webhook-secrets', join(folder, 'secrets')], env)
    assert.deepEqual(
      [full.address, full.tokens, full.limits],
      ['0.0.0.0', [TOKEN, 'another-token-0123'], { longPoll: 5000, maxQueues: 7 }],
    )
    const told = full.deliveries.map(({ queue, url, keys }) => [queue, url.href, keys.map(({ length }) => length)])
    assert.deepEqual(told, [
      ['a', 'https://example.org/a', [24]],
      ['b', 'http://127.0.0.1:1/b', [24, 32]],
      ['c', 'http://[::1]/c', [32, 24]],
    ])
    await assert.rejects(settingsOf(['--store', 'memory:', '--deliver', 'a=http://example.org'], env), UsageError)
    const insecure = ['--store', 'memory:', '--deliver', 'a=http://example.org', '--deliver-insecure']
    assert.equal((await settingsOf(insecure, env)).deliveries.length, 1)
  } finally {
    await rm(folder, { recursive: true })
  }
})
