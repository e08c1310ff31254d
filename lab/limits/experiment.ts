/** Experiment E6: limits over processes, turns between groups, and what they cost. */
import type { Experiment } from '../experiment.ts'
import { on, some } from '../flags.ts'
import { fail, tell } from '../progress.ts'
import { type Part, STORES } from './part.ts'

/** Each loaded only where it is measured. */
const PARTS = {
  rates: async () => (await import('./parts/rates.ts')).rates,
  pauses: async () => (await import('./parts/pauses.ts')).pauses,
  fair: async () => (await import('./parts/fair.ts')).fair,
  blocked: async () => (await import('./parts/blocked.ts')).blocked,
  report: async () => (await import('./parts/report.ts')).report,
  drain: async () => (await import('./parts/drain.ts')).drain,
} satisfies Record<string, () => Promise<Part>>

const flags = {
  only: some(Object.keys(PARTS) as (keyof typeof PARTS)[]),
  store: some(STORES),
  fsync: on('Redis with appendfsync always; unless given, without persistence'),
}

export const limits: Experiment<typeof flags> = {
  id: 'E6',
  flags,
  about: () => 'Limits and turns.',
  async *measure({ only, store: stores, fsync, quick }, stage) {
    for (const name of only) {
      const part = await PARTS[name]()
      const rows = []
      for (const store of stores.filter((each) => part.stores.includes(each))) {
        tell(`${name}, ${store}`)
        try {
          const place = await stage.place(store === 'redis' && fsync ? 'redis-fsync' : store)
          for (const { cells, bars } of await part.measure(store, () => place.fresh(), { quick }))
            rows.push({ cells: [store, ...cells], bars, figures: { part: name, store } })
        } catch (error) {
          // The figures of the other stores are told all the same.
          fail(`${name}, ${store}`, error)
        }
      }
      yield { title: part.title, head: ['', ...part.head], rows }
    }
  },
}
