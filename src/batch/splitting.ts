/**
 * An item's fate is its own: a shared call that the store refuses for good is sent again in halves, until the refused item is alone. An
 * error that repeating may change stays that of the whole call.
 */
import { type ErrorCode, type MillpondError, storeError } from '../values/errors/errors.ts'

/** Final errors that concern the store or the client: smaller calls would end the same. */
const NOT_OF_AN_ITEM: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['Closed', 'StoreCorrupt', 'StoreVersion', 'SecondLibrary', 'ShardMismatch', 'QueueUnknown'] as const),
  ...(['DriverMissing', 'TransactionMismatch'] as const),
])

/** Whether the store refuses what the call carries, however often it is sent. */
export const isRefusal = ({ code, retryable }: MillpondError): boolean => !(retryable || NOT_OF_AN_ITEM.has(code))

/**
 * Calls follow each other, in the order of the items.
 * @param call answers per item
 * @param what names the call in errors that are not of Millpond
 * @param options `stops`: nothing is sent behind an item that failed, and what follows gets its error; false unless set. `divides`: which
 *   errors smaller calls may not have; refusals unless set
 * @returns an answer, or the error, per item; never rejects
 */
export async function splitting<Item, Answer>(
  items: readonly Item[],
  call: (items: readonly Item[]) => Promise<readonly Answer[]>,
  what: string,
  options: { stops?: boolean; divides?: (error: MillpondError) => boolean } = {},
): Promise<readonly (Answer | MillpondError)[]> {
  const { stops = false, divides = isRefusal } = options
  try {
    return await call(items)
  } catch (thrown) {
    const error = storeError(thrown, what)
    if (items.length < 2 || !divides(error)) return items.map(() => error)
  }
  const half = Math.ceil(items.length / 2)
  const first = await splitting(items.slice(0, half), call, what, options)
  const failed = stops ? first.find((answer) => answer instanceof Error) : undefined
  const rest = items.slice(half)
  if (failed !== undefined) return [...first, ...rest.map(() => failed)]
  return [...first, ...(await splitting(rest, call, what, options))]
}
