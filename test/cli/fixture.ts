/** The program, run as a process, from the sources. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

export function environment(more: Record<string, string>): NodeJS.ProcessEnv {
  const { MILLPOND_STORE: _store, MILLPOND_TOKEN: _token, MILLPOND_WEBHOOK_SECRET: _secret, ...rest } = process.env
  return { ...rest, ...more }
}

/** Runs it to its end. @param main the program, from the sources unless given */
export function millpond(args: readonly string[], env: Record<string, string> = {}, main = MAIN) {
  const ran = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', env: environment(env), timeout: 30_000 })
  return { code: ran.status, out: ran.stdout, err: ran.stderr }
}

export interface Process {
  pid: number | undefined
  origin: string
  /** What it has told so far. */
  lines: string[]
  /** Ends it by the signal. @returns the exit code */
  end(signal?: NodeJS.Signals): Promise<number | null>
}

/** Starts it, and waits until it listens. @param main the program, from the sources unless given */
export async function startMillpond(
  args: readonly string[],
  env: Record<string, string> = {},
  main = MAIN,
): Promise<Process> {
  const child = spawn(process.execPath, [main, ...args], { env: environment(env), stdio: ['ignore', 'ignore', 'pipe'] })
  const lines: string[] = []
  const listening = Promise.withResolvers<string>()
  const reader = createInterface(child.stderr)
  reader.on('line', (line) => {
    lines.push(line)
    const [origin] = /http:\/\/[\d.:[\]]+/.exec(line) ?? []
    if (origin !== undefined) listening.resolve(origin)
  })
  child.once('exit', () => listening.reject(new Error(`it ended: ${lines.join('\n')}`)))
  const closed = once(child, 'close')
  return {
    pid: child.pid,
    origin: await listening.promise,
    lines,
    end: async (signal = 'SIGTERM') => {
      child.kill(signal)
      await closed
      return child.exitCode
    },
  }
}
