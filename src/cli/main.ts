#!/usr/bin/env node
/**
 * The program `millpond`. Run by `npx millpond` compiled, and from the sources as `node src/cli/main.ts`.
 *
 * It stops at SIGTERM, at SIGINT, and when the reader of its log is gone (EPIPE). The second signal, more than a second
 * later, ends it at once.
 */
import { onStopSignal } from '../values/runtime/stop-signals.ts'

// First of all: as process 1 of a container, a signal without a listener is ignored.
const stop = new AbortController()
onStopSignal((signal) => stop.abort(signal))
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  // Other errors, such as a full disk, cost lines of the log and nothing else.
  if (error.code === 'EPIPE') stop.abort('nobody reads the log')
})
process.stdout.on('error', () => {})

// Modules that need a current Node are loaded only after this.
const fail = (message: string) => {
  process.stderr.write(`millpond: ${message}\n`)
  process.exit(1)
}
await import('../values/runtime/runtime.ts').catch((error: Error) => fail(error.message))

// Node's own form has a process id, and advice for programmers.
if (process.listenerCount('warning') > 0) {
  process.removeAllListeners('warning')
  process.on('warning', ({ message }) => void process.stderr.write(`millpond: warning: ${message}\n`))
}

/** Key by key, without waiting for Enter. Ctrl-C is a key then, too. */
function keys(listener: (key: string) => void): () => void {
  const heard = (key: string) => (key === '\u0003' ? void process.kill(process.pid, 'SIGINT') : listener(key))
  process.stdin.setRawMode(true).setEncoding('utf8').on('data', heard).resume()
  return () => {
    process.stdin.off('data', heard).setRawMode(false).pause()
  }
}

const { run } = await import('./run.ts')
const { safeText } = await import('../values/errors/safe-error.ts')
const terminal = {
  env: process.env,
  out: (text: string) => void process.stdout.write(text),
  err: (text: string) => void process.stderr.write(text),
  isTTY: { out: process.stdout.isTTY, err: process.stderr.isTTY },
  columns: () => process.stdout.columns ?? process.stderr.columns,
  rows: () => process.stdout.rows,
  input: () => process.stdin.setEncoding('utf8'),
  ...(process.stdin.isTTY && { keys }),
}
const running = await run(process.argv.slice(2), terminal, stop.signal)
if (typeof running === 'number') {
  process.exitCode = running
  // What the start had begun, such as a connection to the store, would keep the process.
  if (stop.signal.aborted) process.exit()
} else {
  const end = () => {
    running.stop(String(stop.signal.reason)).then(
      () => process.exit(0),
      (error: unknown) => fail(safeText(error)),
    )
  }
  if (stop.signal.aborted) end()
  else stop.signal.addEventListener('abort', end)
}
