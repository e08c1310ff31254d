/** What the tests of the servers share. */

import { spawnSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import { after } from '../support/cleaning.ts'
import { ServerMissing } from './server.ts'

/** The server, stopped after the test; undefined: its programs are not on this machine, and the test is skipped. */
export async function started<T extends { stop(): Promise<void> }>(
  t: TestContext,
  start: () => Promise<T>,
): Promise<T | undefined> {
  try {
    const server = await start()
    after(t, () => server.stop())
    return server
  } catch (error) {
    if (!(error instanceof ServerMissing)) throw error
    t.skip(error.message)
    return undefined
  }
}

/** Whether it runs; one that ended and that nobody has buried yet (a zombie) does not. */
export function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}
