#!/usr/bin/env node
/** The program `millpond`. Run by `npx millpond` compiled, and from the sources as `node src/cli/main.ts`. */

// Modules that need a current Node are loaded only after this.
const fail = (message: string) => {
  process.stderr.write(`millpond: ${message}\n`)
  process.exit(1)
}
await import('../values/runtime.ts').catch((error: Error) => fail(error.message))

const { run } = await import('./run.ts')
const { safeText } = await import('../values/safe-error.ts')
const running = await run(process.argv.slice(2), {
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
})
if (typeof running === 'number') process.exitCode = running
else {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // The second signal ends it at once.
      if (stopping) process.exit(1)
      stopping = true
      running.stop(signal).then(
        () => process.exit(0),
        (error: unknown) => fail(safeText(error)),
      )
    })
  }
}
