/** A part of the run that can be asked for by name; each is one file in `sections/`, and yields its reports as they come. */
import type { Options, SectionName } from './options.ts'
import type { Report } from './row.ts'

export type Section = (options: Options, tell: (what: string) => void) => AsyncGenerator<Report, void>

const SECTIONS: Record<SectionName, () => Promise<Section>> = {
  memory: async () => (await import('./sections/memory.ts')).memory,
  sqlite: async () => (await import('./sections/sqlite.ts')).sqlite,
  idle: async () => (await import('./sections/idle.ts')).idle,
  http: async () => (await import('./sections/http.ts')).http,
  backlog: async () => (await import('./sections/backlog.ts')).backlog,
  prefetch: async () => (await import('./sections/prefetch.ts')).prefetch,
}

export async function* runSection(
  ...[name, ...rest]: [SectionName, ...Parameters<Section>]
): AsyncGenerator<Report, void> {
  const section = await SECTIONS[name]()
  yield* section(...rest)
}
