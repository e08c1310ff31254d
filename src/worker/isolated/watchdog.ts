/**
 * A thread beside the handler, in the handler's process. It ends the process when a call outgrows a limit, and when the worker's process is
 * gone. The handler may spin or wait for ever: the thread runs on.
 *
 *   asleep ──a call begins──► looking, every few milliseconds ──the call is over──► asleep
 *                                └─ a limit is outgrown, or the parent is gone: says why on stderr, ends the process
 *
 * The main thread tells of calls through shared memory, so that a call costs no message. While nothing is under way, the main thread
 * itself sees that the parent is gone.
 */
import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { CALLS, LOADING, type Watch } from './watch.ts'

/** Milliseconds between two looks: a loop that allocates takes some 40 MB in that time. */
const EVERY = 5
const STDERR = 2

const { shared, limits, token, parent }: Watch = workerData
const calls = new Int32Array(shared)

parentPort?.postMessage('runs')

for (;;) {
  const call = Atomics.load(calls, CALLS)
  // Odd: a call is under way.
  if (call % 2 === 1) watch(call)
  else Atomics.wait(calls, CALLS, call)
}

function watch(call: number): void {
  const allowed = call === LOADING || limits.cpu === null ? Number.POSITIVE_INFINITY : used() + limits.cpu
  while (Atomics.wait(calls, CALLS, call, EVERY) === 'timed-out') {
    if (limits.memory !== null && process.memoryUsage.rss() > limits.memory) end('memory')
    if (used() > allowed) end('cpu')
    if (!isParentThere()) end('orphan')
  }
}

/** Milliseconds of CPU time of the process. */
function used(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function isParentThere(): boolean {
  if (process.ppid !== parent) return false
  if (process.platform !== 'win32') return true
  try {
    // Windows keeps the number of a parent that is gone.
    return process.kill(parent, 0)
  } catch {
    return false
  }
}

function end(why: 'memory' | 'cpu' | 'orphan'): void {
  try {
    writeSync(STDERR, `\n${token} ${why}\n`)
  } catch {
    // Nobody reads it: the parent is gone.
  }
  process.kill(process.pid, 'SIGKILL')
}
