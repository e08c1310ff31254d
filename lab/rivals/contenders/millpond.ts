/** Millpond through its public API, with nothing tuned. */
import { Millpond } from '../../../src/index.ts'
import { line } from '../../bench/contenders/millpond.ts'
import type { Open } from '../contender.ts'

const PATHS = { plain: {}, retried: { retry: { backoff: () => 0 } }, delayed: { delay: 50 } }

export const open: Open = async ({ url, concurrency, forget, path = 'plain' }) => {
  const pond = await Millpond.open(url)
  return {
    line: (name, handler) =>
      line(pond, name, handler, { durability: 'full', dir: '', concurrency, forget }, PATHS[path]),
    async close() {
      await pond.close()
    },
  }
}
