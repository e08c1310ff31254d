import { isMillpondError } from '../values/errors/errors.ts'
import { type PushCall, pushCalls } from '../values/runtime/published-calls.ts'
import type { Pushed } from './push.ts'

/** Publishes the push. @param push with the options to use */
export function publishedPush<Options extends { trace?: string | undefined }, Out extends Pushed | Pushed[]>(
  queue: string,
  count: number,
  options: Options | undefined,
  push: (options: Options | undefined) => Promise<Out>,
): Promise<Out> {
  // What is no object is refused by the push itself.
  if (options !== undefined && (typeof options !== 'object' || options === null)) return push(options)
  const call: PushCall = { queue, count, trace: options?.trace, ended: undefined }
  pushCalls.publish(call)
  const { trace } = call
  // The options were of this type, and `trace` is of all of them.
  const given = trace === options?.trace ? options : ({ ...options, trace } as Options)
  const pushed = push(given)
  const { ended } = call
  if (ended !== undefined) {
    pushed.then(
      (out) =>
        ended(
          null,
          [out].flat().map(({ id }) => id),
        ),
      (error: unknown) => ended(isMillpondError(error) ? error.code : 'Error', []),
    )
  }
  return pushed
}
