/** Which jobs wait, or waited, for which. */
import type { Input } from '../../../store.ts'
import type { JobState } from '../../../values/jobs/records.ts'
import type { Relatives } from '../../../values/operations/requests.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { type Link, linkIn, partitionOf } from '../links.ts'
import { askOwners, whereAre } from '../owners.ts'
import type { Partition } from '../partition.ts'
import { answered, askEach, chunks, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { bytesIn, idBytes, idText, idTexts } from '../wire.ts'
import { stateIn } from './find.ts'

/** Where the ids of the parents begin in what a script tells of them; before them stands how many links are open. */
const IDS_AT = 20
const OPEN_AT = 17
/** Links that one call answers of each job, and of all jobs. */
const MOST_LINKS = 1000
const MOST_LINKS_IN_ALL = 20_000

export function relatives(context: StoreContext, { ids, limit }: Input<'relatives'>): Promise<(Relatives | null)[]> {
  return askOwners(context, ids, (partition, own) => relativesIn(context, partition, own, limit))
}

/** Of the first ids. */
async function relativesIn(
  context: StoreContext,
  partition: Partition,
  ids: readonly string[],
  limit: number,
): Promise<(Relatives | null)[]> {
  const some = ids.slice(0, MOST_LINKS_IN_ALL / MOST_LINKS)
  const answers = await kinOf(context, partition, some)
  const known = await linkedParents(context, some, answers)
  return Promise.all(
    answers.map(async (kin, at) => {
      if (kin === null) return null
      // Those that are awaited may be unknown.
      const parents = kin.parents.filter((id, i) => i < kin.open || known.has(`${id} ${some[at]}`)).sort()
      const children = (await childrenOf(context, partition, some[at] ?? '', kin)).sort()
      return {
        queue: partition.queue,
        state: kin.state,
        onDead: kin.kind === 'r' ? 'run' : 'cancel',
        parents: parents.slice(0, limit),
        children: children.slice(0, limit),
        more: parents.length > limit || children.length > limit,
      }
    }),
  )
}

/** Of links that are closed, those of which the parent knows: else it is gone, and another job may have its id. As parent and child. */
async function linkedParents(
  context: StoreContext,
  ids: readonly string[],
  kins: readonly (Kin | null)[],
): Promise<Set<string>> {
  const links = kins.flatMap((kin, at) =>
    (kin?.parents.slice(kin.open) ?? []).map((parent) => ({ parent, child: ids[at] ?? '' })),
  )
  const homes = await whereAre(
    context,
    links.map(({ parent }) => parent),
  )
  const linked = await askEach(
    links,
    ({ parent }) => homes.get(parent),
    (home, own) => {
      const items = [Buffer.concat(own.flatMap(({ parent, child }) => [idBytes(parent), idBytes(child)]))]
      return callScript(context, 'linking', home, { items })
    },
  )
  const isLinked = answered(linked)
  return new Set(links.flatMap(({ parent, child }, at) => (isLinked[at] === 1 ? [`${parent} ${child}`] : [])))
}

/** What relatives.lua tells. `parents`: those with an open link first. `from`: where further links begin; empty: nowhere. */
export interface Kin {
  state: JobState
  kind: string
  open: number
  parents: string[]
  from: Buffer
  links: Link[]
}

/** @param from of an earlier answer */
export async function kinOf(
  context: StoreContext,
  partition: Partition,
  ids: readonly string[],
  from: Buffer | '' = '',
): Promise<(Kin | null)[]> {
  const items = [from, ...ids.map(idBytes)]
  const answers = await callScript(context, 'relatives', partition, { head: [MOST_LINKS], items })
  return answers.map((answer) => {
    if (!Array.isArray(answer)) return null
    const [state, kept, further, ...links] = answer as readonly unknown[]
    const bytes = bytesIn(kept)
    return {
      state: stateIn(state),
      kind: bytes.toString('latin1', 0, 1),
      open: bytes.length === 0 ? 0 : bytes.readUIntBE(OPEN_AT, IDS_AT - OPEN_AT),
      parents: bytes.length === 0 ? [] : idTexts(bytes, IDS_AT),
      from: bytesIn(further),
      links: links.map(linkIn),
    }
  })
}

/** The children that are there: a link stays with the parent even if the child never came or is gone. */
async function childrenOf(
  context: StoreContext,
  partition: Partition,
  id: string,
  first: Pick<Kin, 'links' | 'from'>,
): Promise<string[]> {
  const children = new Set<string>()
  const look = async (part: string, some: readonly Link[]) => {
    const items = [Buffer.concat(some.flatMap(({ child }) => [child, idBytes(id)]))]
    const linked = await callScript(context, 'linked', partitionOf(context, part), { items })
    for (const [at, { child }] of some.entries()) if (linked[at] === 1) children.add(idText(child))
  }
  for (let page = first; ; ) {
    const byPart = [...Map.groupBy(page.links, ({ part }) => part)]
    await Promise.all(byPart.flatMap(([part, own]) => chunks(own, MAX_ITEMS_PER_CALL).map((some) => look(part, some))))
    if (page.from.length === 0) return [...children]
    const [next] = await kinOf(context, partition, [id], page.from)
    if (!next) return [...children]
    page = next
  }
}
