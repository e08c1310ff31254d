/** A process that looks at the rules is killed: another one goes on where it was. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Alert, alerts } from '../../src/alerts/index.ts'
import { onEachStore } from '../api/suite.ts'
import { until } from '../support/until.ts'

const PROGRAM = fileURLToPath(new URL('watcher.ts', import.meta.url))

const CHECKS: Parameters<typeof onEachStore>[1] = {
  'what it has told is not told again, and what is over is told by another': async ({ open, url }) => {
    const pond = await open()
    const queue = pond.queue<number>('mail')
    await queue.pushMany([1, 2, 3])
    const child = spawn(process.execPath, [PROGRAM, url], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let words = ''
      child.stdout.on('data', (chunk) => {
        words += chunk
      })
      await until(() => words === 'firing\n')
      // That it told is in the store.
      await until(async () => (await pond.queue('millpond/alerts').jobs('done')).length === 1)
      const [right] = await pond.queue('millpond/alerts/watch').jobs('running')
      assert.ok(right)
      const told: string[] = []
      const notify = ({ state }: Alert) => void told.push(state)
      const own = alerts(pond, { rules: [{ name: 'deep', when: { depth: 1 }, for: 0 }], notify, every: 100 })
      child.kill('SIGKILL')
      await once(child, 'exit')
      await until(async () => {
        const now = await pond.job(right.id)
        return now?.state === 'running' && now.worker !== right.worker
      })
      queue.work(() => {})
      await until(() => told.length > 0)
      await own.close()
      assert.deepEqual(told, ['resolved'])
    } finally {
      child.kill('SIGKILL')
    }
  },
}

// They wait for a lease to end, so all stores do at once.
describe('a killed process', { concurrency: true }, () =>
  onEachStore('alerts of a process that is killed', CHECKS, 'shared'),
)
