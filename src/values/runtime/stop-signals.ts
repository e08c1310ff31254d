/** SIGTERM and SIGINT. */

export type StopSignal = 'SIGTERM' | 'SIGINT'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** Milliseconds. Two signals this close count as one: npm and supervisors may send a signal twice. */
const SAME_STOP = 1000

/**
 * Calls `stop` at the first signal. A second one, more than a second later, ends the process at once.
 * @returns a function that ends the listening
 */
export function onStopSignal(stop: (signal: StopSignal) => void): () => void {
  let stoppedAt: number | undefined
  const heard = (signal: StopSignal) => {
    if (stoppedAt === undefined) {
      stoppedAt = performance.now()
      stop(signal)
    } else if (performance.now() - stoppedAt > SAME_STOP) {
      unlisten()
      process.kill(process.pid, signal)
      // As process 1 of a container, a signal without a listener is ignored.
      process.exit(1)
    }
  }
  const unlisten = () => {
    for (const signal of SIGNALS) process.off(signal, heard)
  }
  for (const signal of SIGNALS) process.on(signal, heard)
  return unlisten
}
