/** What a handler may do to the process that it runs in. Loaded as the main program of a process or of a thread. */
import { workerData } from 'node:worker_threads'

const MIB = 1024 ** 2

export const HARMS = {
  heap() {
    const kept: number[][] = []
    for (;;) kept.push(Array.from({ length: 100_000 }, (_, n) => n + 0.5))
  },
  'one large array'() {
    // V8 refuses it before any memory is touched.
    return new Array(200_000_000).fill(0.5)
  },
  Buffers() {
    const kept: Buffer[] = []
    for (;;) kept.push(Buffer.alloc(MIB, 1))
  },
  'endless loop'() {
    for (;;);
  },
  'endless wait'() {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
  'process.exit'() {
    process.exit(0)
  },
  'process.abort'() {
    process.abort()
  },
  'native crash'() {
    process.kill(process.pid, 'SIGSEGV')
    for (;;);
  },
} as const

export type Harm = keyof typeof HARMS

export const isHarm = (name: unknown): name is Harm => typeof name === 'string' && Object.hasOwn(HARMS, name)

const harm: unknown = workerData ?? process.argv[2]
// A host imports this module for the names alone.
if (isHarm(harm)) HARMS[harm]()
