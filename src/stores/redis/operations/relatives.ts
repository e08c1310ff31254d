/** Which jobs wait, or waited, for which. */
import type { Input, Relatives } from '../../../store.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { linkIn, partitionOf } from '../links.ts'
import { areIn, askOwners, whereAre } from '../owners.ts'
import type { Partition } from '../partition.ts'
import { chunks, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { bytesIn, idBytes, idText, idTexts } from '../wire.ts'
import { stateIn } from './find.ts'

/** Where the ids of the parents begin for which a job waits. */
const OPEN_AT = 17
/** Links that one call answers, about. */
const MOST_LINKS = 20_000

export function relatives(context: StoreContext, { ids, limit }: Input<'relatives'>): Promise<(Relatives | null)[]> {
  return askOwners(context, ids, (partition, own) => relativesIn(context, partition, own, limit))
}

/** Of the first ids, at least of one. */
async function relativesIn(
  context: StoreContext,
  partition: Partition,
  ids: readonly string[],
  limit: number,
): Promise<(Relatives | null)[]> {
  const some = ids.slice(0, Math.max(1, Math.floor(MOST_LINKS / limit)))
  const answers = await kinOf(context, partition, some, limit + 1)
  const known = await whereAre(
    context,
    answers.flatMap((kin) => (kin === null ? [] : idTexts(kin.parents, 0))),
  )
  return Promise.all(
    answers.map(async (kin, at) => {
      if (kin === null) return null
      // Those that are awaited may be unknown.
      const open = new Set(idTexts(kin.waits, OPEN_AT))
      const parents = idTexts(kin.parents, 0)
        .filter((id) => known.has(id) || open.has(id))
        .sort()
      const children = await childrenOf(context, partition, some[at] ?? '', kin.links, limit)
      return {
        queue: partition.queue,
        state: kin.state,
        onDead: kin.waits.toString('latin1', 0, 1) === 'r' ? 'run' : 'cancel',
        parents: parents.slice(0, limit),
        children: children.slice(0, limit),
        more: parents.length > limit || children.length > limit,
      }
    }),
  )
}

/** The links behind one, as relatives.lua tells them. */
export async function kinOf(
  context: StoreContext,
  partition: Partition,
  ids: readonly string[],
  limit: number,
  from: Buffer | null = null,
) {
  const items = [from ?? '', ...ids.map(idBytes)]
  const answers = await callScript(context, 'relatives', partition, { head: [limit], items })
  return answers.map((answer) => {
    if (!Array.isArray(answer)) return null
    const [state, waits, parents, ...links] = answer as readonly unknown[]
    return { state: stateIn(state), waits: bytesIn(waits), parents: bytesIn(parents), links: links.map(bytesIn) }
  })
}

/** The first children that are still there, and one more than `limit` if there are. A link to a child that is gone stays until its parent goes. */
async function childrenOf(
  context: StoreContext,
  partition: Partition,
  id: string,
  first: readonly Buffer[],
  limit: number,
): Promise<string[]> {
  const children = new Set<string>()
  for (let links = first; ; ) {
    const isThere = new Set<string>()
    const byPart = Map.groupBy(links.map(linkIn), ({ part }) => part)
    await Promise.all(
      [...byPart].flatMap(([part, own]) =>
        chunks(own, MAX_ITEMS_PER_CALL).map(async (some) => {
          const ids = some.map(({ child }) => idText(child))
          const known = await areIn(context, partitionOf(context, part), ids)
          for (const [at, child] of ids.entries()) if (known[at]) isThere.add(child)
        }),
      ),
    )
    for (const { child } of links.map(linkIn)) if (isThere.has(idText(child))) children.add(idText(child))
    const last = links.at(-1)
    if (links.length <= limit || children.size > limit || last === undefined) return [...children]
    const [kin] = await kinOf(context, partition, [id], limit + 1, last)
    links = kin?.links ?? []
  }
}
