import { mkdirSync, rmSync } from 'node:fs'
import { Child } from '../../child.ts'
import { DATA } from '../runner.ts'

/** `plain`: answers without pushing. `push`: once the store has the job. `work`: as `push`, and a worker drains the queue. */
export type Mode = 'plain' | 'push' | 'work'

const SERVER = new URL('server.ts', import.meta.url)
let started = 0

export async function startServer(mode: Mode): Promise<{ url: string; stop: () => Promise<void> }> {
  const dir = `${DATA}/http-${process.pid}-${started++}`
  mkdirSync(dir, { recursive: true })
  const server = await Child.start(SERVER, [mode, `${dir}/http.db`])
  return {
    url: `http://127.0.0.1:${server.port}/emails`,
    async stop() {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
