/** What a run tells while it goes on, and the failures that do not end it. */

/** Shows one line on a terminal in place of the last one. An empty text clears it. */
export function tell(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
}

export const failures: string[] = []

/** Notes a failure and goes on: the other figures are still worth having. The exit code will be 1. */
export function fail(about: string, error: unknown): void {
  const failure = `${about}: ${error instanceof Error ? error.message : String(error)}`
  failures.push(failure)
  console.error(failure)
  process.exitCode = 1
}
