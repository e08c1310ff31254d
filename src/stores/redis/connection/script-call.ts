/** Packs the arguments of a script and calls it, as contract/redis/README.md says under "Calling a script". */
import type { StoreContext } from '../context.ts'
import type { Partition } from '../partition.ts'
import { pack } from '../wire.ts'
import type { Arg } from './calls.ts'
import { scriptOf } from './scripts.ts'

interface ScriptCall {
  /** What the head holds after the values that every head has. */
  head?: readonly unknown[]
  /** What follows the head. */
  items?: readonly Arg[]
  /** Answered only when the replicas have what was written. */
  safe?: boolean
  /** The same was sent before, and may have taken effect. */
  again?: boolean
}

/** What a script answers, and what it tells to do about links: README.md, "Links". */
export interface Told {
  answer: readonly unknown[]
  links: readonly (readonly unknown[])[]
}

const LINKS = Buffer.from('links')

const isLinks = (last: unknown): last is readonly (readonly unknown[])[] =>
  Array.isArray(last) && Buffer.isBuffer(last[0]) && LINKS.equals(last[0])

/**
 * Calls a script on a partition.
 * @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed
 */
export async function callAlone(
  { calls, safeCalls, notifier, now }: StoreContext,
  name: string,
  partition: Partition,
  { head = [], items = [], safe = false, again = false }: ScriptCall = {},
): Promise<Told> {
  const { tag, queue, part } = partition
  const keys = scriptOf(name).keys.map((key) => partition.key(key))
  const values = [now(), notifier.channel, notifier.origin, queue, part, ...head]
  const answer = await (safe ? safeCalls : calls).script(
    name,
    { tag, keys },
    [pack(values), again ? '1' : '0', ...items],
    true,
  )
  const last = answer.at(-1)
  return isLinks(last) ? { answer: answer.slice(0, -1), links: last.slice(1) } : { answer, links: [] }
}

/** As `callAlone`, and settles what the script tells about links. What that cannot settle, a sweep does. */
export async function callScript(
  context: StoreContext,
  name: string,
  partition: Partition,
  call?: ScriptCall,
): Promise<readonly unknown[]> {
  const { answer, links } = await callAlone(context, name, partition, call)
  if (links.length > 0) await context.settle(partition, links)
  return answer
}
