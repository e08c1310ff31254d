/** fastq's promise face, which its README recommends. Its `drained` is cheaper than awaiting every push. */
import fastq from 'fastq'
import type { Item, Line, Open } from '../contender.ts'

export const open: Open = async ({ concurrency }) => ({
  line(_name, handler): Line {
    const queue = fastq.promise<unknown, Item, void>(handler, concurrency)
    queue.pause()
    return {
      push(item) {
        // Its promise is of the end of the work, not of being held: that is `settled`.
        void queue.push(item)
        return undefined
      },
      pushMany: undefined,
      work() {
        queue.resume()
      },
      settled: () => queue.drained(),
      async stop() {},
    }
  },
  async close() {},
})
