/** What goes on, on the terminal; and what went wrong without ending the run. */

/** Replaces what was told before; nothing if empty. */
export function tell(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
}

export const failures: string[] = []

/** The other figures are still worth having. */
export function fail(about: string, error: unknown): void {
  const failure = `${about}: ${error instanceof Error ? error.message : String(error)}`
  failures.push(failure)
  console.error(failure)
  process.exitCode = 1
}
