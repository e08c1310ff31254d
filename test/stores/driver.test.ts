/** Stores whose client is not installed: an error that says which package, and that trying again is of no use. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

/** The package is made impossible to find, as if it had never been installed. */
const PROGRAM = `
  import { registerHooks } from 'node:module'
  const [url, missing, entry, cache] = process.argv.slice(1)
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== missing) return next(specifier, context)
      throw Object.assign(new Error("Cannot find package '" + missing + "'"), { code: 'ERR_MODULE_NOT_FOUND' })
    },
  })
  const { Millpond } = await import(entry)
  const { Cache } = await import(cache)
  for (const open of missing === 'pg' ? [Millpond.open] : [Millpond.open, Cache.open]) {
    const { code, retryable, message, cause } = await open(url).catch((error) => error)
    console.log(code, retryable, message.includes('npm install ' + missing), cause.code)
  }
`
const src = (name: string) => new URL(`../../src/${name}.ts`, import.meta.url).href

for (const [url, name, opens] of [
  ['redis://127.0.0.1:1', 'ioredis', 2],
  ['postgres://127.0.0.1:1/db', 'pg', 1],
] as const) {
  test(`without ${name}: DriverMissing, which is not to be tried again`, async () => {
    const args = ['--input-type=module', '--eval', PROGRAM, url, name, src('index'), src('cache/index')]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
    const line = ['DriverMissing', false, true, 'ERR_MODULE_NOT_FOUND'].join(' ')
    assert.deepEqual(stdout.trim().split('\n'), Array(opens).fill(line))
  })
}
