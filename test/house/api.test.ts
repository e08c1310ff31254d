/** What the package offers is written down: a change to it shows in a change to the report. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { apiReport, REPORT } from '../../build/api.ts'
import { PACKING, published } from './published.ts'

test('build/api.txt has what the package exports', { timeout: PACKING }, async () => {
  const { project } = await published()
  const now = apiReport(join(project, 'node_modules/millpond/dist'))
  assert.equal(now, readFileSync(REPORT, 'utf8'), '`npm run api` writes it; CHANGELOG.md names what changed')
})
