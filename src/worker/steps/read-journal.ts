import type { Store } from '../../store.ts'
import type { Entry } from '../../values/jobs/records.ts'

/** All entries of a job's journal; none if the store does not know the job. @throws `Store…` */
export async function readJournal({ operations }: Store, id: string): Promise<Entry[]> {
  const all: Entry[] = []
  for (;;) {
    const [page] = await operations.entries({ items: [{ id, after: all.at(-1)?.n ?? 0 }] })
    all.push(...(page?.entries ?? []))
    if (!page?.more) return all
  }
}
