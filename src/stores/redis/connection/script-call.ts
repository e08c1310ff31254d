/** Packs the arguments of a script and calls it, as contract/redis/README.md says under "Calling a script". */
import type { StoreContext } from '../context.ts'
import { pack } from '../wire.ts'
import type { Arg } from './calls.ts'

interface ScriptCall {
  /** The queue that the script is at; unset: it finds the queues by the jobs. */
  queue?: string
  /** What the head holds after the values that every head has. */
  head?: readonly unknown[]
  /** What follows the head. */
  items?: readonly Arg[]
  /** Answered only when the replicas have what was written. */
  safe?: boolean
  /** The same was sent before, and may have taken effect. */
  again?: boolean
}

/** @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed */
export async function callScript(
  { calls, safeCalls, notifier, now }: StoreContext,
  name: string,
  { queue, head = [], items = [], safe = false, again = false }: ScriptCall = {},
): Promise<readonly unknown[]> {
  const values = [now(), notifier.channel, notifier.origin, queue ?? null, ...head]
  return (safe ? safeCalls : calls).script(name, [pack(values), again ? '1' : '0', ...items])
}
