#!/usr/bin/env node
/** The program `millpond`. Run by `npx millpond` compiled, and from the sources as `node src/cli/main.ts`. */

// What needs a current Node is loaded only after this.
await import('../values/runtime.ts').catch((error: Error) => {
  process.stderr.write(`millpond: ${error.message}\n`)
  process.exit(1)
})

const { run } = await import('./run.ts')
const { safeText } = await import('../values/safe-error.ts')
const running = await run(process.argv.slice(2), {
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
})
if (typeof running === 'number') process.exitCode = running
else {
  let asked = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // Asked twice, somebody does not want to wait.
      if (asked) process.exit(1)
      asked = true
      running.stop(signal).then(
        () => process.exit(0),
        (error: unknown) => {
          process.stderr.write(`millpond: ${safeText(error)}\n`)
          process.exit(1)
        },
      )
    })
  }
}
