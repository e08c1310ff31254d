/** A test file that says what the run's servers are, to one that starts a run of its own. */

import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { missingReason, serverUrl, sharedServers } from '../shared.ts'

test('the shared servers', () => {
  const seen = sharedServers.map((name) => [name, { url: serverUrl(name), missing: missingReason(name) }])
  writeFileSync(process.env.MILLPOND_SEEN ?? '', JSON.stringify(Object.fromEntries(seen)))
})
