/** Links whose parents the store did not know when their children were restored: contract/redis/awaited.lua. */
import { callScript } from './connection/script-call.ts'
import type { StoreContext } from './context.ts'
import { linkAll, partitionOf } from './links.ts'
import { whereAre } from './owners.ts'
import { chunks, MAX_ITEMS_PER_CALL } from './per-partition.ts'
import { bytesIn, ID_BYTES, idBytes, idText } from './wire.ts'

/** Links that a sweep looks at. */
const MOST_PER_SWEEP = 100
/** Ms for which a child may be missing: it is stored after its links. No call lasts as long. */
const MISSING = 3_600_000
const MOST_MISSING = 10_000

async function ask(
  { calls, queues }: StoreContext,
  what: 'add' | 'drop' | 'of' | 'all',
  args: readonly (Buffer | number)[],
): Promise<Buffer[]> {
  if (what !== 'all' && args.length === 0) return []
  return (await calls.script('awaited', queues.registryOf('awaited'), [what, ...args])).map(bytesIn)
}

/** Before their children are stored, so that no link is lost. */
export async function awaitLinks(context: StoreContext, links: readonly Buffer[]): Promise<void> {
  for (const some of chunks(links, MAX_ITEMS_PER_CALL)) await ask(context, 'add', some)
  context.awaitedCount += links.length
}

/** Links children to those of their parents that are known by now. @returns whether there are any */
export async function linkKnown(context: StoreContext, links: readonly Buffer[]): Promise<boolean> {
  const homes = await whereAre(
    context,
    links.map((link) => idText(link)),
  )
  const known = links.flatMap((link) => {
    const home = homes.get(idText(link))
    return home === undefined ? [] : [{ home, link }]
  })
  const gone = await linkAll(context, known)
  const linked = known.filter(({ link }) => !gone.has(idText(link))).map(({ link }) => link)
  for (const some of chunks(linked, MAX_ITEMS_PER_CALL)) await ask(context, 'drop', some)
  return linked.length > 0
}

/** These jobs have come into the store. */
export async function linkArrived(context: StoreContext, ids: readonly string[]): Promise<void> {
  for (const some of chunks(ids, MAX_ITEMS_PER_CALL)) {
    let links: Buffer[]
    do links = await ask(context, 'of', some.map(idBytes))
    while (links.length > 0 && (await linkKnown(context, links)))
  }
}

/** Of a sweep: some of them, the next ones each time. */
export async function lookForAwaited(context: StoreContext): Promise<void> {
  if (context.awaitedCount === 0) return
  const links = await ask(context, 'all', [MOST_PER_SWEEP, context.awaitedFrom])
  context.awaitedFrom = (links.length === MOST_PER_SWEEP && links.at(-1)) || Buffer.alloc(0)
  await linkKnown(context, links)
  await dropChildless(context, links)
}

/** Whose children are gone, nobody waits for. */
async function dropChildless(context: StoreContext, links: readonly Buffer[]): Promise<void> {
  const { childless } = context
  const now = context.now() ?? performance.now()
  const dropped: Buffer[] = []
  const look = async (part: string, some: readonly Buffer[]) => {
    const items = [Buffer.concat(some.flatMap((link) => [childOf(link), link.subarray(0, ID_BYTES)]))]
    const linked = await callScript(context, 'linked', partitionOf(context, part), { items })
    for (const [at, link] of some.entries()) {
      const name = link.toString('latin1')
      const since = childless.get(name)
      if (linked[at] === 1) childless.delete(name)
      else if (since !== undefined && now - since >= MISSING) dropped.push(link)
      else if (since === undefined && childless.size < MOST_MISSING) childless.set(name, now)
    }
  }
  const byPart = Map.groupBy(links, (link) => link.toString('utf8', 2 * ID_BYTES))
  await Promise.all([...byPart].map(([part, some]) => look(part, some)))
  await ask(context, 'drop', dropped)
  for (const link of dropped) childless.delete(link.toString('latin1'))
}

const childOf = (link: Buffer): Buffer => link.subarray(ID_BYTES, 2 * ID_BYTES)
