/**
 * The application's functions run in the asynchronous context (`AsyncLocalStorage`) in which they were registered.
 * Without that a handler would run in the context of whatever woke its worker, such as another user's request that
 * pushed a job.
 */
import { AsyncResource } from 'node:async_hooks'

/** @returns the function, to be called from anywhere, in the context of now */
export function inThisContext<Given extends unknown[], Result>(
  run: (...given: Given) => Result,
): (...given: Given) => Result {
  const context = new AsyncResource('Millpond')
  return (...given) => context.runInAsyncScope(run, undefined, ...given)
}
