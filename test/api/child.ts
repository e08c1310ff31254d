/** Processes of their own, for tests of how a pond lives and dies with its process. */
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'

const INDEX = new URL('../../src/index.ts', import.meta.url).href
const CACHE = new URL('../../src/cache/index.ts', import.meta.url).href

export interface Child {
  process: ChildProcessByStdio<Writable, Readable, Readable>
  /** What it has printed. */
  text(): string
  /** Its exit code, or the signal that ended it; fails if it does not end. */
  end(): Promise<number | string>
}

/** Runs the code in a process, with `Millpond`, `Cache` and a `url` at hand. */
export function run(url: string, code: string): Child {
  const imports = `import { Millpond } from ${JSON.stringify(INDEX)}\nimport { Cache } from ${JSON.stringify(CACHE)}`
  const source = `${imports}\nconst url = ${JSON.stringify(url)}\n${code}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)))
  const ended = once(child, 'exit').then(([code, signal]: (number | string)[]) => signal ?? code ?? '')
  return {
    process: child,
    text: () => text,
    async end() {
      const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
      const how = await ended
      clearTimeout(timer)
      assert.notEqual(how, 'SIGKILL', `it did not end by itself; it printed: ${text}`)
      return how
    },
  }
}
