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

/**
 * Calls a script on a partition.
 * @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed
 */
export function callScript(
  { calls, safeCalls, notifier, now }: StoreContext,
  name: string,
  partition: Partition,
  { head = [], items = [], safe = false, again = false }: ScriptCall = {},
): Promise<readonly unknown[]> {
  const { tag, queue, part } = partition
  const keys = scriptOf(name).keys.map((key) => partition.key(key))
  const values = [now(), notifier.channel, notifier.origin, queue, part, ...head]
  return (safe ? safeCalls : calls).script(name, { tag, keys }, [pack(values), again ? '1' : '0', ...items], true)
}
