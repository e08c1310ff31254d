/** A short program's output. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { environment } from './environment.ts'

const execute = promisify(execFile)

export async function run(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(command, args, { env: environment(), timeout: 60_000, maxBuffer: 16 << 20 })
  return stdout.trim()
}

/** Waits until the condition holds; an error of its own counts as no. */
export async function until(what: string, condition: () => Promise<boolean>, bound = 60_000): Promise<void> {
  const end = performance.now() + bound
  for (;;) {
    let last: unknown
    try {
      if (await condition()) return
    } catch (error) {
      last = error
    }
    if (performance.now() > end) throw new Error(`still not so after ${bound} ms: ${what}`, { cause: last })
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
