/** `millpond serve`: from settings to a server that runs until it is told to stop. */

import { serve } from '../../serve/index.ts'
import { HttpServer } from '../../serve/server.ts'
import { isMillpondError } from '../../values/errors/errors.ts'
import { errorSummary } from '../../values/errors/safe-error.ts'
import type { Running } from '../verb.ts'
import { Log } from './log.ts'
import type { ServeSettings } from './settings.ts'

export interface Serving extends Running {
  /** The origin on which it listens, without a slash at the end. */
  origin: string
}

/**
 * Starts the server.
 * @param write takes lines of the log
 * @param stopping if it is aborted while the store opens, the call resolves to undefined
 * @throws MillpondError, and errors of the system, such as EADDRINUSE
 */
export async function startServing(
  settings: ServeSettings,
  write: (line: string) => void,
  stopping: AbortSignal,
): Promise<Serving | undefined> {
  const { tokens, hosts, limits, connections, address, port, logRequests, stopTimeout, dashboard } = settings
  const log = new Log(write, settings.json)
  const deliveries = settings.deliveries.map((delivery) => ({
    ...delivery,
    onFailure: ({ id, queue, attempt }: { id: string; queue: string; attempt: number }, message: string) =>
      log.error(`delivery ${queue} ${message}`, message, { queue, job: id, attempt }),
  }))
  const opening = serve(settings.store, {
    ...{ ...limits, ...connections, tokens, hosts, deliveries, dashboard, alerts: settings.alerts },
    onError: (error) => log.error(isMillpondError(error) ? error.code : errorSummary(error), errorSummary(error)),
    onUnauthorized: ({ address = 'unknown', times }) =>
      log.error(`401 ${address}`, 'a request without a right token', { address, times }),
  })
  const served = await unlessAborted(opening, stopping)
  if (served === undefined) {
    log.info(`stopping: ${stopping.reason}`)
    return undefined
  }
  const server = new HttpServer({
    handle: (request) => served.handle(request),
    stopping: () => served.stop(),
    limits: connections,
    ...(logRequests && {
      onAnswer: (method, path, status, ms) => log.info(`${method} ${path} ${status}`, { ms: Math.round(ms) }),
    }),
  })
  const origin = await server.listen(address, port).catch(async (error: unknown) => {
    await served.close({ timeout: 0 })
    throw error
  })
  log.info(`listening on ${origin}`, { store: served.store, token: tokens.length > 0 ? 'needed' : 'none' })
  if (dashboard) log.info(`dashboard at ${origin}/dashboard/`)
  if (settings.alerts !== undefined) log.info('watching', { rules: settings.alerts.rules.length })
  for (const { queue, url } of deliveries) log.info(`delivering ${queue} to ${url.origin}`)

  const stop = async (reason: string) => {
    log.info(`stopping: ${reason}`)
    const until = performance.now() + stopTimeout
    await server.stop(stopTimeout)
    await served.close({ timeout: Math.max(0, Math.round(until - performance.now())) })
    log.info('stopped')
  }
  let stopped: Promise<void> | undefined
  return { origin, stop: (reason) => (stopped ??= stop(reason)) }
}

/** Undefined if the signal is aborted first: what the promise comes to is then left to the end of the process. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const aborted = Promise.withResolvers<undefined>()
  const abort = () => aborted.resolve(undefined)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  promise.catch(() => {})
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener('abort', abort))
}
