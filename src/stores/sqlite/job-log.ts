/** The log of a job, as operations on claims write it: contract/operations.md, "The log of a job". */
import type { StoreContext } from './queues.ts'

/** To be called before the claim ends. */
export function addLog(
  statements: StoreContext['statements'],
  hold: { queue: string; id: string; fence: number },
  lines: readonly string[] | undefined,
): void {
  if (lines !== undefined) statements.run('log/add', { ...hold, lines: JSON.stringify(lines) })
}

/** Another program may have stored something else: then it is one line. */
export function logFrom(stored: unknown): { log?: string[] } {
  if (stored === null) return {}
  try {
    const lines: unknown = JSON.parse(String(stored))
    if (Array.isArray(lines)) return { log: lines.map(String) }
  } catch {
    // Shown as it is.
  }
  return { log: [String(stored)] }
}
