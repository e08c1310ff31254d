import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { DATA } from '../runner.ts'

/** `plain`: answers without pushing. `push`: once the store has the job. `work`: as `push`, and a worker drains the queue. */
export type Mode = 'plain' | 'push' | 'work'

const SERVER = fileURLToPath(new URL('server.ts', import.meta.url))
let started = 0

export async function startServer(mode: Mode): Promise<{ url: string; stop: () => Promise<void> }> {
  const dir = `${DATA}/http-${process.pid}-${started++}`
  mkdirSync(dir, { recursive: true })
  const profile = process.env.BENCH_PROF
  const server = fork(SERVER, [mode, `${dir}/http.db`], {
    execArgv: [
      '--disable-warning=ExperimentalWarning',
      ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
    ],
  })
  const [message] = await once(server, 'message')
  return {
    url: `http://127.0.0.1:${message.port}/emails`,
    async stop() {
      const gone = once(server, 'exit')
      server.disconnect()
      await gone
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
