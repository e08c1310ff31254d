/** `millpond serve`: from settings to a server that runs until it is told to stop. */

import { serve } from '../serve/index.ts'
import { HttpServer } from '../serve/server.ts'
import { isMillpondError } from '../values/errors.ts'
import { sketch } from '../values/safe-error.ts'
import { Log } from './log.ts'
import type { ServeSettings } from './settings.ts'

export interface Running {
  /** Where it listens, without a slash at the end. */
  origin: string
  /** Stops, once; resolves when everything is told and let go of. @param reason for the log */
  stop(reason: string): Promise<void>
}

/** @param write takes lines of the log @throws MillpondError, and what the system says to the address */
export async function startServing(settings: ServeSettings, write: (line: string) => void): Promise<Running> {
  const log = new Log(write, settings.json)
  const deliveries = settings.deliveries.map((delivery) => ({
    ...delivery,
    onFailure: ({ id, queue, attempt }: { id: string; queue: string; attempt: number }, message: string) =>
      log.trouble(`delivery ${queue} ${message}`, message, { queue, job: id, attempt }),
  }))
  const served = await serve(settings.store, {
    ...settings.limits,
    tokens: settings.tokens,
    hosts: settings.hosts,
    deliveries,
    onError: (error) => log.trouble(kindOf(error), messageOf(error)),
    onUnauthorized: ({ address = 'unknown', times }) =>
      log.trouble(`401 ${address}`, 'a request without a right token', { address, times }),
  })
  const server = new HttpServer({
    handle: (request) => served.handle(request),
    stopping: () => served.stop(),
    limits: settings.connections,
    ...(settings.logRequests
      ? { onAnswer: (method, path, status, ms) => log.info(`${method} ${path} ${status}`, { ms: Math.round(ms) }) }
      : {}),
  })
  let origin: string
  try {
    origin = await server.listen(settings.address, settings.port)
  } catch (error) {
    await served.close({ timeout: 0 })
    throw error
  }
  log.info(`listening on ${origin}`, { store: served.store, token: settings.tokens.length > 0 ? 'needed' : 'none' })
  for (const { queue, url } of settings.deliveries) log.info(`delivering ${queue} to ${url.origin}`)

  let stopped: Promise<void> | undefined
  const stop = async (reason: string) => {
    log.info(`stopping: ${reason}`)
    const until = performance.now() + settings.stopTimeout
    await server.stop(settings.stopTimeout)
    await served.close({ timeout: Math.max(0, Math.round(until - performance.now())) })
    log.info('stopped')
  }
  return {
    origin,
    stop(reason) {
      stopped ??= stop(reason)
      return stopped
    },
  }
}

function kindOf(error: unknown): string {
  return isMillpondError(error) ? error.code : messageOf(error)
}

function messageOf(error: unknown): string {
  if (isMillpondError(error)) return `${error.code}: ${error.message}`
  return sketch(error)
}
