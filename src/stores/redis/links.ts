/**
 * Links between jobs of different partitions: contract/redis/README.md, "Links". A script that ends a job tells of its children; each of
 * these is then told in its own partition, and at last the ended job's partition that this is done.
 */
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { callAlone, callScript } from './connection/script-call.ts'
import type { StoreContext } from './context.ts'
import { type Partition, parsedPart } from './partition.ts'
import { answered, askEach, chunks, Failures, MAX_ITEMS_PER_CALL } from './per-partition.ts'
import { bytesIn, ID_BYTES, idBytes, idText, numberIn, textIn } from './wire.ts'

/** Links that one call settles. */
const STEP = DEFAULTS.graph.step
/** How a parent can have ended: done, dead, cancelled, removed. */
const ENDS = 4

type Told = readonly (readonly unknown[])[]

export const partitionOf = ({ queues }: StoreContext, part: string): Partition => {
  const { queue, index } = parsedPart(part)
  return queues.partition(queue, index)
}

/** The parent, the child and the child's part, as scripts have them. */
export const linkBytes = (parent: Buffer, child: Buffer, part: string): Buffer =>
  Buffer.concat([parent, child, Buffer.from(part)])

/** A child, and its part. */
export interface Link {
  child: Buffer
  part: string
}

export function linkIn(value: unknown): Link {
  const bytes = bytesIn(value)
  return { child: bytes.subarray(0, ID_BYTES), part: bytes.toString('utf8', ID_BYTES) }
}

/** Settles what a script of the partition has told, and what follows from that. @returns `isLeft`: a sweep is to go on */
export async function settleLinks(
  context: StoreContext,
  partition: Partition,
  told: Told,
): Promise<{ isLeft: boolean; failures: Failures }> {
  const failures = new Failures()
  const left = [{ partition, told }]
  let budget = STEP
  let isLeft = false
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    if (budget <= 0) return { isLeft: true, failures }
    const graphs = next.told.filter(([kind]) => bytesIn(kind).equals(GRAPH))
    for (const [, graph, home] of graphs)
      await failures.noted(finish(context, next.partition, bytesIn(graph), textIn(home)))
    const members = next.told.filter((one) => !graphs.includes(one)).map(memberIn)
    for (const { links } of members) budget -= links.length
    isLeft ||= members.some(({ from }) => from.length > 0)
    left.push(...(await settleMembers(context, next.partition, members, failures)))
  }
  // A script tells of so many links at most.
  return { isLeft: isLeft || budget <= 0, failures }
}

const GRAPH = Buffer.from('graph')

/** An ended job; or a link to one. */
interface Member {
  name: Buffer
  score: string
  /** Where the links begin that are left to another call; empty: none. */
  from: Buffer
  links: Link[]
}

const memberIn = ([name, score, from, ...links]: readonly unknown[]): Member => ({
  name: bytesIn(name),
  score: textIn(score),
  from: bytesIn(from),
  links: links.map(linkIn),
})

/** @returns what the children's partitions tell in turn */
async function settleMembers(
  context: StoreContext,
  partition: Partition,
  members: readonly Member[],
  failures: Failures,
): Promise<{ partition: Partition; told: Told }[]> {
  const further: { partition: Partition; told: Told }[] = []
  const open = members.flatMap((member) =>
    member.links.map(({ child, part }) => {
      const end = Buffer.from(String(Number(member.score) % ENDS))
      return { member, part, bytes: Buffer.concat([child, member.name.subarray(0, ID_BYTES), end]) }
    }),
  )
  const failed = new Set<Member>()
  await Promise.all(
    [...Map.groupBy(open, ({ part }) => part)].flatMap(([part, own]) =>
      chunks(own, MAX_ITEMS_PER_CALL).map(async (some) => {
        const home = partitionOf(context, part)
        try {
          const links = await settleIn(context, home, some.map(({ bytes }) => bytes).sort(Buffer.compare))
          if (links.length > 0) further.push({ partition: home, told: links })
        } catch (error) {
          failures.note(error)
          for (const { member } of some) failed.add(member)
        }
      }),
    ),
  )
  const settled = members.filter((member) => !failed.has(member))
  const items = settled.flatMap(({ name, score, from }) => [name, score, from])
  if (items.length > 0) await failures.noted(callScript(context, 'settled', partition, { items, safe: true }))
  return further
}

async function settleIn(context: StoreContext, partition: Partition, items: readonly Buffer[]): Promise<Told> {
  const { local } = context.notifier
  const told: (readonly unknown[])[] = []
  for (let left = items; left.length > 0; ) {
    const { answer, links } = await callAlone(context, 'settle', partition, {
      items: [Buffer.concat([...left])],
      safe: true,
    })
    const [done, released, ...cancelled] = answer
    told.push(...links)
    if (numberIn(released) > 0) local.ring('work', partition.queue)
    for (const id of cancelled) local.ring('finished', partition.queue, idText(bytesIn(id)))
    if (cancelled.length > 0) local.ring('room', partition.queue)
    if (numberIn(done) === 0) break
    left = left.slice(numberIn(done))
  }
  return told
}

/** What was decided about a graph, now or before. */
export async function decide(
  { calls, queues }: StoreContext,
  graph: Buffer,
  home: string,
  wish: 'committed' | 'aborted',
): Promise<boolean> {
  const { queue, index } = parsedPart(home)
  const partition = queues.partition(queue, index)
  const key = partition.key(`graph:${graph.toString('hex')}`)
  const [decided] = await calls.script('decide', { tag: partition.tag, keys: [key] }, [wish])
  return textIn(decided) === 'committed'
}

/** Starts or removes the jobs of a graph in a partition. */
export async function finishIn(
  context: StoreContext,
  partition: Partition,
  graph: Buffer,
  isCommitted: boolean,
): Promise<void> {
  for (let left = 1; left > 0; ) {
    const call = { head: [isCommitted, STEP], items: [graph], safe: true }
    const [answer] = await callScript(context, 'decided', partition, call)
    left = numberIn(answer)
  }
  if (isCommitted) context.notifier.local.ring('work', partition.queue)
}

/** What a client began that is no more. `home`: where it is decided; empty: it is, and its jobs are being started. */
export async function finish(context: StoreContext, partition: Partition, graph: Buffer, home: string): Promise<void> {
  const isCommitted = home === '' || (await decide(context, graph, home, 'aborted'))
  await finishIn(context, partition, graph, isCommitted)
}

/** Decides the graphs of which a script of the partition has told that jobs are held. @returns of each answer whether it does */
export async function finishHeld(
  context: StoreContext,
  partition: Partition,
  answers: readonly unknown[],
): Promise<boolean[]> {
  const held = new Map<string, { graph: Buffer; home: string }>()
  const isHeld = answers.map((answer) => {
    if (!Array.isArray(answer) || !HELD.equals(bytesIn(answer[0]))) return false
    const graph = bytesIn(answer[1])
    held.set(graph.toString('hex'), { graph, home: textIn(answer[2]) })
    return true
  })
  for (const { graph, home } of held.values()) await finish(context, partition, graph, home)
  return isHeld
}

const HELD = Buffer.from('held')

/**
 * Links to parents in their partitions. What graphs that are not decided have there may come to nothing: they are decided.
 * @param graph the caller's own
 * @returns the ids of the parents that are unknown there, or were not decided
 */
export async function linkAll(
  context: StoreContext,
  links: readonly { home: Partition; link: Buffer }[],
  graph: Buffer = Buffer.alloc(0),
): Promise<Set<string>> {
  const unknown = new Set<string>()
  await Promise.all(
    [...Map.groupBy(links, ({ home }) => home)].flatMap(([home, own]) =>
      chunks(own, MAX_ITEMS_PER_CALL).map(async (some) => {
        const parts = some.map(({ link }) => link.toString('utf8', 2 * ID_BYTES))
        const bytes = Buffer.concat(some.map(({ link }) => link.subarray(0, 2 * ID_BYTES)))
        const answers = await callScript(context, 'link', home, { head: [parts], items: [bytes, graph], safe: true })
        for (const [at, { link }] of some.entries()) if (answers[at] !== 0) unknown.add(idText(link))
        await finishHeld(context, home, answers)
      }),
    ),
  )
  return unknown
}

/**
 * Lets children of a job wait for further jobs, or looks whether they could.
 * @returns per pair, whether the child waits for the job `within`
 */
export async function adoptAll(
  context: StoreContext,
  within: string,
  pairs: readonly { id: string; child: Buffer; part: string }[],
  onlyLook: boolean,
): Promise<boolean[]> {
  const answers = await askEach(
    pairs,
    ({ part }) => part,
    async (part, some) => {
      const items = [Buffer.concat(some.flatMap(({ id, child }) => [child, idBytes(within), idBytes(id)]))]
      const call = { head: [onlyLook], items, safe: true }
      return (await callScript(context, 'adopt', partitionOf(context, part), call)).map((answer) => answer === 0)
    },
  )
  return answered(answers).map((waits) => waits === true)
}
