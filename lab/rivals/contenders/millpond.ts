/** Millpond through its public API, with nothing tuned. */
import { Millpond } from '../../../src/index.ts'
import { line } from '../../bench/contenders/millpond.ts'
import type { Open } from '../contender.ts'

export const open: Open = async ({ url, concurrency, forget }) => {
  const pond = await Millpond.open(url)
  return {
    line: (name, handler) => line(pond, name, handler, { durability: 'full', dir: '', concurrency, forget }),
    async close() {
      await pond.close()
    },
  }
}
