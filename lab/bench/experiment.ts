/** Queues beside their rivals: in one process (`bench`), and on Redis and PostgreSQL (`rivals`). */
import type { Experiment } from '../experiment.ts'
import { fail } from '../progress.ts'
import { comparison } from './row.ts'
import { flagsFor, type Section } from './section.ts'

export const bench = queues('bench', {
  memory: async () => (await import('./sections/memory.ts')).memory,
  sqlite: async () => (await import('./sections/sqlite.ts')).sqlite,
  idle: async () => (await import('./sections/idle.ts')).idle,
  http: async () => (await import('./sections/http.ts')).http,
  backlog: async () => (await import('./sections/calls.ts')).calls,
  prefetch: async () => (await import('./sections/prefetch.ts')).prefetch,
})

export const rivals = queues('rivals', {
  redis: async () => (await import('./sections/servers.ts')).redis,
  postgres: async () => (await import('./sections/servers.ts')).postgres,
  groups: async () => (await import('./sections/groups.ts')).groups,
  backlog: async () => (await import('./sections/backlog.ts')).backlog,
  pinned: async () => (await import('./sections/pinned.ts')).pinned,
})

function queues<Name extends string>(
  id: string,
  sections: Record<Name, () => Promise<Section>>,
): Experiment<ReturnType<typeof flagsFor<Name>>> {
  return {
    id,
    flags: flagsFor(Object.keys(sections) as Name[]),
    about: ({ runs }, machine) => `${machine.rivals}
Medians (least–greatest) of ${runs} runs unless a note says otherwise, each in a fresh process, contenders in turn. n ×: what stands in bold is so many times better.`,
    async *measure({ only, ...options }, stage) {
      for (const name of only) {
        try {
          const section = await sections[name]()
          for await (const found of section(options, stage)) yield comparison(found)
        } catch (error) {
          // What the other sections find is still worth having.
          fail(name, error)
        }
      }
    },
  }
}
