import PQueue from 'p-queue'
import type { Line, Open } from '../contender.ts'

export const open: Open = async ({ concurrency }) => ({
  line(_name, handler): Line {
    const queue = new PQueue({ concurrency, autoStart: false })
    return {
      push(item) {
        void queue.add(() => handler(item))
        return undefined
      },
      pushMany: undefined,
      work() {
        queue.start()
      },
      settled: () => queue.onIdle(),
      async stop() {},
    }
  },
  async close() {},
})
