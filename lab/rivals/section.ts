/** A part of the run that can be asked for by name; each is one file in `sections/`, and yields its reports as they come. */
import type { Report } from '../bench/row.ts'
import type { Options, SectionName } from './options.ts'
import type { Place } from './place.ts'

export interface Stage {
  options: Options
  /** Started when it is first asked for, and the same for all sections. */
  redis(): Promise<Place>
  postgres(): Promise<Place>
  tell(what: string): void
  fail(what: string): void
}
export interface Page extends Report {
  /** Heads the first column of figures; Millpond unless given. */
  own?: string
}
export type Section = (stage: Stage) => AsyncGenerator<Page, void>

const SECTIONS: Record<SectionName, () => Promise<Section>> = {
  redis: async () => (await import('./sections/redis.ts')).redis,
  postgres: async () => (await import('./sections/postgres.ts')).postgres,
  groups: async () => (await import('./sections/groups.ts')).groups,
  backlog: async () => (await import('./sections/backlog.ts')).backlog,
  pinned: async () => (await import('./sections/pinned.ts')).pinned,
}

export async function* runSection(name: SectionName, stage: Stage): AsyncGenerator<Page, void> {
  const section = await SECTIONS[name]()
  yield* section(stage)
}
