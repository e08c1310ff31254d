/** A thread beside a harm, in the same process: it ends the process at a limit, or once its parent is gone. */
import { workerData } from 'node:worker_threads'

const { memory, cpu, every } = workerData as { memory: number; cpu: number; every: number }
const parent = process.ppid
const never = new Int32Array(new SharedArrayBuffer(4))
for (;;) {
  Atomics.wait(never, 0, 0, every)
  const { user, system } = process.cpuUsage()
  if (process.memoryUsage.rss() > memory || user + system > cpu * 1000 || process.ppid !== parent) {
    process.kill(process.pid, 'SIGKILL')
  }
}
