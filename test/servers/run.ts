/** A short program's output. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { environment } from './environment.ts'

const execute = promisify(execFile)

export async function run(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(command, args, { env: environment(), timeout: 60_000, maxBuffer: 16 << 20 })
  return stdout.trim()
}
