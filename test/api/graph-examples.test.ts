/** The programs of docs/graphs.md as they are. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const SOURCES = new URL('../web/adapters-source.ts', import.meta.url).href
const run = promisify(execFile)

async function printed(name: string, ...args: string[]): Promise<string[]> {
  const program = fileURLToPath(new URL(`../../examples/${name}.ts`, import.meta.url))
  const { STORE: _, TABLE: __, ...env } = process.env
  const { stdout } = await run(process.execPath, ['--import', SOURCES, program, ...args], { env, timeout: 60_000 })
  return stdout.trim().split('\n')
}

test('examples/resize.ts: the last job has the results of jobs that were pushed within another', async () => {
  assert.deepEqual(await printed('resize'), ['{ bytes: 8028 }'])
})

test('examples/trip.ts: what was booked is undone when a later step fails', async () => {
  const booked = ['booked the flight', 'booked the hotel', 'booked the car']
  const all = await printed('trip')
  assert.deepEqual(all.slice(0, 3), booked)
  assert.match(all.slice(3).join(' '), /^\{ +booked: \[ 'trip-7\/flight', 'trip-7\/hotel', 'trip-7\/car' \] \}$/)
  const [flight, dead, undid, last] = await printed('trip', '--fail', 'hotel')
  assert.equal(flight, 'booked the flight')
  assert.match(dead ?? '', /is dead: no hotel is left$/)
  assert.deepEqual([undid, last], ['undid trip-7/flight of trip trip-7', "{ undone: [ 'trip-7/flight' ] }"])
})

test('examples/import.ts: a bar, and a report of all chunks', async () => {
  const lines = await printed('import', '--rows', '25500')
  assert.equal(lines.at(-2), `${'█'.repeat(30)} 100 %, 0 failed`)
  assert.equal(lines.at(-1), '{ rows: 25500, failed: 0 }')
})
