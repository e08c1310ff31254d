import type { Store } from '../../store.ts'
import type { JobRecord, NewEntry } from '../../values/jobs/records.ts'

/** Journals that are asked for in a call. */
const BATCH = 100

/** The same records, those with steps with their journals. */
export async function withEntries({ operations }: Store, records: readonly JobRecord[]): Promise<readonly JobRecord[]> {
  const journals = new Map<string, NewEntry[]>()
  let left = records.flatMap(({ id, journal }) => (journal ? [{ id, after: 0 }] : []))
  while (left.length > 0) {
    const some = left.slice(0, BATCH)
    const pages = await operations.entries({ items: some })
    const rest = some.flatMap(({ id }, at) => {
      const { entries = [], more = false } = pages[at] ?? {}
      journals.set(id, [...(journals.get(id) ?? []), ...entries])
      const after = entries.at(-1)?.n ?? some[at]?.after ?? 0
      return more ? [{ id, after }] : []
    })
    left = [...rest, ...left.slice(BATCH)]
  }
  if (journals.size === 0) return records
  return records.map((record) => {
    const entries = journals.get(record.id)
    return entries === undefined ? record : { ...record, entries }
  })
}
