/** `millpond serve` and its settings: flags, variables and files that are wrong, and what a running one logs. */
import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '../../src/cli/run.ts'
import { millpond, startMillpond } from '../cli/fixture.ts'
import { scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { assertClean, CANARY, written } from './canary.ts'

const SECRET = `whsec_${Buffer.from(`${CANARY} and twenty-four bytes`).toString('base64')}`
const DELIVER = ['--deliver', 'q=https://example.org/hook']

test('settings that are wrong: no line shows a secret', async (t) => {
  const folder = scratch(t)
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const unreadable = file('unreadable', CANARY)
  chmodSync(unreadable, 0)
  const memory = ['--store', 'memory:']
  const calls: [args: string[], env?: Record<string, string>][] = [
    [['--store', `redis://u:${CANARY}/x@127.0.0.1:1`]],
    [['--store', `redis://u:${CANARY}@127.0.0.1:1?timeout=100`]],
    [['--store', `postgres://u:${CANARY}@127.0.0.1:1/db`]],
    [['--store', `postgres://u:12/${CANARY}@127.0.0.1:1/db`]],
    [['--store', `mysql://u:${CANARY}@h`]],
    [['--store', `${CANARY}@h`]],
    [['--store', `sqlite://u:${CANARY}@h/x`]],
    [[], { MILLPOND_STORE: `redis://u:x@12/${CANARY}@h` }],
    [[`redis://u:${CANARY}@h`]],
    [[...memory, CANARY]],
    [[...memory, `--token-${CANARY}`]],
    [[...memory, `--token=${CANARY}`]],
    [[...memory, '--', CANARY]],
    [[...memory, `--json=${CANARY}`]],
    [[...memory, '--token-file', CANARY]],
    [[...memory, '--token-file', file('short', CANARY)]],
    [[...memory, '--token-file', file('spaces', `${CANARY} with spaces in it`)]],
    [memory, { MILLPOND_TOKEN: CANARY }],
    [memory, { MILLPOND_TOKEN: `${CANARY}\u00e9 is not of ASCII` }],
    [[...memory, ...DELIVER], { MILLPOND_WEBHOOK_SECRET: CANARY }],
    [[...memory, ...DELIVER], { MILLPOND_WEBHOOK_SECRET: `whsec_${CANARY}` }],
    [[...memory, ...DELIVER, '--webhook-secrets', file('no.json', `{ "q": ${CANARY} }`)]],
    [[...memory, ...DELIVER, '--webhook-secrets', file('list.json', `["${CANARY}"]`)]],
    [[...memory, ...DELIVER, '--webhook-secrets', file('deep.json', `{ "q": { "x": "${CANARY}" } }`)]],
    [[...memory, ...DELIVER, '--webhook-secrets', file('bad.json', `{ "q": "${CANARY}" }`)]],
    [[...memory, ...DELIVER, '--webhook-secrets', file('none.json', `{ "other": "${SECRET}" }`)]],
    [[...memory, ...DELIVER, '--webhook-secrets', SECRET]],
    [[...memory, '--deliver', `q=https://u:${CANARY}@example.org`], { MILLPOND_WEBHOOK_SECRET: SECRET }],
    [[...memory, '--deliver', `q=http://example.org/?key=${CANARY}`], { MILLPOND_WEBHOOK_SECRET: SECRET }],
    [[...memory, '--deliver', `https://example.org/?key=${CANARY}`], { MILLPOND_WEBHOOK_SECRET: SECRET }],
    [[...memory, '--deliver', `q q=https://example.org/?key=${CANARY}`], { MILLPOND_WEBHOOK_SECRET: SECRET }],
    [[...memory, ...DELIVER, '--deliver', `q=https://example.org/?key=${CANARY}`], { MILLPOND_WEBHOOK_SECRET: SECRET }],
  ]
  if (process.getuid?.() !== 0) calls.push([[...memory, '--token-file', unreadable]])
  for (const [args, env] of calls) {
    let out = ''
    const told = (text: string) => {
      out += text
    }
    const { value: code, lines } = await written(() =>
      run(['serve', ...args], { env: env ?? {}, out: told, err: told }, new AbortController().signal),
    )
    const what = `serve ${args.join(' ')} ${JSON.stringify(env ?? {})}`
    assert.ok(code === 1 || code === 2, `${what}: ended with ${code}`)
    assertClean(out, what)
    for (const line of lines) assertClean(line, what)
    assert.doesNotMatch(out, /^\s+at /m, `${what}: a bare error`)
  }
  const whole = [millpond([`redis://u:${CANARY}@h`]), millpond(['serve', '--store', `redis://u:12/${CANARY}@h`])]
  for (const { code, out, err } of whole) {
    assert.equal(code, 2)
    assertClean(out + err, 'the program itself')
  }
})

test('a running service logs neither tokens, nor webhooks, nor payloads', async (t) => {
  const args = ['serve', '--store', 'memory:', '--port', '0', '--log-requests']
  for (const more of [[], ['--json']]) {
    const service = await startMillpond(
      [...args, ...more, '--deliver', `q=http://127.0.0.1:1/${CANARY}?key=${CANARY}`],
      { MILLPOND_TOKEN: `${CANARY}-is-the-token`, MILLPOND_WEBHOOK_SECRET: SECRET },
    )
    t.after(() => service.end())
    const ask = (path: string, body: unknown, token = `${CANARY}-is-the-token`) =>
      fetch(`${service.origin}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
    const answers = [
      await ask('/v1/queues/q/jobs', { data: { to: CANARY } }, `${CANARY}-is-no-token`),
      await ask('/v1/queues/other/jobs', `{ "data": "${CANARY}`),
      await ask('/v1/queues/other/jobs', { data: CANARY, priority: CANARY }),
      await ask(`/v1/queues/other/jobs?key=${CANARY}`, { data: CANARY }),
    ]
    assert.equal((await ask('/v1/queues/q/jobs', { data: { to: CANARY } })).ok, true)
    for (const answer of answers) await answer.text()
    await until(() => service.lines.some((line) => line.includes('could not be reached')))
    await service.end()
    for (const line of service.lines) assertClean(line, 'the log')
    assert.equal(service.lines.filter((line) => line.includes('MillpondWarning')).length, 0, 'the log tells it already')
  }
})
