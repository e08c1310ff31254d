/** Stores over TLS: a certificate that is not trusted is refused and named, one that is trusted lets jobs through. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chownSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { ordinaryAccount } from '../servers/account.ts'
import { started } from '../servers/fixtures.ts'
import { freePort } from '../servers/ports.ts'
import { startPostgres } from '../servers/postgres.ts'
import { startRabbitmq } from '../servers/rabbitmq.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { scratch } from '../support/cleaning.ts'

/** Opens the store, has a job done, and prints what came of it; in a process of its own, since Node reads further authorities as it starts. */
const PROGRAM = `
  const [url, entry] = process.argv.slice(1)
  const { Millpond } = await import(entry)
  try {
    await using pond = await Millpond.open(url, { timeout: 5000 })
    const queue = pond.queue('secrets')
    await queue.push(20)
    console.log(await new Promise((resolve) => queue.work((job) => resolve(job.data + 1))))
  } catch (error) {
    console.log(error.code, error.message)
  }
`
const ENTRY = new URL('../../src/index.ts', import.meta.url).href

async function attempt(url: string, authority?: string): Promise<string> {
  const env = { ...process.env, ...(authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: authority }) }
  const args = ['--disable-warning=MillpondWarning', '--input-type=module', '--eval', PROGRAM, url, ENTRY]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 60_000 })
  return stdout.trim()
}

interface Certificate {
  certificate: string
  key: string
}

function certificateFor(t: TestContext): Certificate {
  const folder = scratch(t)
  const [certificate, key] = [join(folder, 'server.crt'), join(folder, 'server.key')]
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
    ...['-keyout', key, '-out', certificate],
  ])
  assert.equal(made.status, 0, String(made.stderr))
  const account = ordinaryAccount()
  if (account !== undefined) for (const file of [folder, certificate, key]) chownSync(file, account.uid, account.gid)
  return { certificate, key }
}

const noOpenssl = spawnSync('openssl', ['version']).status === 0 ? false : 'openssl is not installed'

test('rediss:', { skip: noOpenssl || missingReason('redis') }, async (t) => {
  const { certificate, key } = certificateFor(t)
  const port = await freePort()
  const tls = [
    '--tls-port',
    `${port}`,
    '--tls-cert-file',
    certificate,
    '--tls-key-file',
    key,
    '--tls-auth-clients',
    'no',
  ]
  const redis = await started(t, () => startRedis({ args: tls }))
  if (redis === undefined) return
  const url = `rediss://localhost:${port}`
  assert.equal(await attempt(url, certificate), '21')
  assert.match(
    await attempt(url),
    /^StoreUnavailable cannot reach Redis at localhost:\d+: .*NODE_EXTRA_CA_CERTS.*self-signed certificate/,
  )
})

test('postgres: with sslmode', { skip: noOpenssl || missingReason('postgres') }, async (t) => {
  const { certificate, key } = certificateFor(t)
  const settings = { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key }
  const postgres = await started(t, () => startPostgres({ settings }))
  if (postgres === undefined) return
  const url = new URL(postgres.url)
  url.hostname = 'localhost'
  url.searchParams.set('sslmode', 'verify-full')
  assert.equal(await attempt(url.href, certificate), '21')
  assert.match(
    await attempt(url.href),
    /^StoreUnavailable no TLS connection .*NODE_EXTRA_CA_CERTS.*self-signed certificate/,
  )
  const without = await started(t, () => startPostgres())
  if (without === undefined) return
  assert.match(
    await attempt(`${without.url}?sslmode=require`),
    /^StoreUnavailable no TLS connection .*does not support SSL/,
  )
})

test('amqps:', { skip: noOpenssl || missingReason('rabbitmq') }, async (t) => {
  const { certificate, key } = certificateFor(t)
  const port = await freePort()
  const conf = [
    ...[`listeners.ssl.1 = 127.0.0.1:${port}`, 'ssl_options.verify = verify_none'],
    ...[
      `ssl_options.cacertfile = ${certificate}`,
      `ssl_options.certfile = ${certificate}`,
      `ssl_options.keyfile = ${key}`,
    ],
  ]
  const rabbitmq = await started(t, () => startRabbitmq({ conf }))
  if (rabbitmq === undefined) return
  const url = `amqps://localhost:${port}`
  assert.equal(await attempt(url, certificate), '21')
  assert.match(await attempt(url), /^StoreUnavailable .*NODE_EXTRA_CA_CERTS.*localhost:\d+: self-signed certificate/)
})
