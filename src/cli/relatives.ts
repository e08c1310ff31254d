/** The jobs that a job waits for, and those that wait for it, as the command shows them. */
import type { Millpond } from '../pond/millpond.ts'

/** Jobs of each kind that are shown with their states. */
const MAX_SHOWN = 10

export interface ShownRelatives {
  /** For programs. */
  ids: { parents: string[]; children: string[] }
  rows: string[][]
}

/** @returns undefined: the job has none, or the store knows of none */
export async function relativesOf(pond: Millpond, id: string): Promise<ShownRelatives | undefined> {
  if (!pond.store.capabilities.graphs) return undefined
  const [node] = (await pond.graph(id, { limit: 1 }))?.nodes ?? []
  if (node === undefined || node.parents.length + node.children.length === 0) return undefined
  const { parents, children } = node
  const rows = [...(await rowsOf(pond, 'parent', parents)), ...(await rowsOf(pond, 'child', children))]
  return { ids: { parents, children }, rows }
}

async function rowsOf(pond: Millpond, name: string, ids: readonly string[]): Promise<string[][]> {
  const shown = await Promise.all(ids.slice(0, MAX_SHOWN).map((id) => pond.job(id)))
  const rows = shown.flatMap((job) => (job === undefined ? [] : [[name, `${job.id}  ${job.queue}, ${job.state}`]]))
  const more = ids.length - MAX_SHOWN
  return more > 0 ? [...rows, [name, `and ${more} more`]] : rows
}
