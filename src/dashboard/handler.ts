/**
 * From a request to its answer.
 *
 *   path ─┬─ a file ─► who? ─► the file
 *         ├─ events ─► who? ─► a stream
 *         └─ api ─► POST, same origin, JSON ─► who? ─► which store, queue, job ─► may they? ─► the operation
 *
 * What the caller may not see is a 404, as what does not exist.
 */
import type { Millpond } from '../pond/millpond.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import { checkObject, checkOptions } from '../values/options/options.ts'
import { readBody } from '../web/body.ts'
import { isResponse } from '../web/guard.ts'
import { contentType } from '../web/headers.ts'
import { hostOf, isForeign } from '../web/origin.ts'
import { clientOf, Permits } from '../web/permits.ts'
import { errorAnswer, type OnError, Refusal, unsupportedType } from '../web/problem.ts'
import * as log from './action-log.ts'
import * as actions from './actions.ts'
import { alerts } from './alerts.ts'
import { fileAnswer, guarded, jsonAnswer } from './answers.ts'
import { bulk } from './bulk.ts'
import type { Callers } from './callers.ts'
import { Call } from './context.ts'
import { count } from './count.ts'
import { pageFiles } from './page-files.ts'
import { pollerOf } from './poller.ts'
import * as reads from './reads.ts'
import type { Redaction } from './redact.ts'
import * as schedules from './schedules.ts'
import { tickStream } from './stream.ts'

type Operation = (call: Call, body: object) => Promise<object>

const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...{ queue: reads.queue, jobs: reads.jobs, job: reads.job, workers: reads.workers, count },
  ...{ pause: actions.pause, resume: actions.resume, override: actions.override, clear: actions.clear },
  ...{ limitGroup: actions.limitGroup, requeue: actions.requeue, cancel: actions.cancel, remove: actions.remove },
  ...{ update: actions.update, bulk, schedules: schedules.schedules, runSchedule: schedules.runSchedule },
  ...{ schedule: schedules.schedule, previewSchedule: schedules.previewSchedule },
  ...{
    changeSchedule: schedules.changeSchedule,
    pauseSchedule: schedules.pauseSchedule,
    resumeSchedule: schedules.resumeSchedule,
  },
  ...{ removeSchedule: schedules.removeSchedule, actions: log.actions, alerts },
}

const FILES: ReadonlySet<string> = new Set(['page.js', 'page.css', 'icon.svg'])
/** Pages that are open at once, and those of one client. */
const MAX_STREAMS = 200
const MAX_STREAMS_PER_CLIENT = 50
const BODY_TIMEOUT = 15_000
/** Seconds. */
const RETRY_AFTER = 5

export interface HandlerOptions {
  ponds: ReadonlyMap<string, Millpond>
  callers: Callers
  redaction: Redaction
  acted: (event: ActionEvent, pond: Millpond) => Promise<void>
  report: OnError
  /** Aborted when one of the ponds closes. */
  stopping: AbortSignal
  maxBody: number
}

export class Handler {
  readonly #options: HandlerOptions
  readonly #streams = new Permits(MAX_STREAMS, MAX_STREAMS_PER_CLIENT)
  #files: Promise<ReadonlyMap<string, string>> | undefined

  constructor(options: HandlerOptions) {
    this.#options = options
  }

  /** Never rejects. */
  async handle(request: Request): Promise<Response> {
    try {
      return guarded(await this.#answer(request))
    } catch (error) {
      return guarded(errorAnswer(error, request, RETRY_AFTER, this.#options.report))
    }
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    const [, before = '', name = ''] = /^(.*\/)([^/]*)$/.exec(pathname) ?? []
    if (before.endsWith('/api/')) return this.#api(request, name, before.slice(0, -'api/'.length))
    checkRead(request)
    if (isCrossSite(request) && request.headers.get('sec-fetch-mode') !== 'navigate') {
      throw new Refusal(403, 'Pages of other origins may not use this dashboard.')
    }
    if (name === 'events') return this.#events(request)
    if (!this.#options.callers.arePagesOpen) {
      const caller = await this.#options.callers.of(request)
      if (isResponse(caller)) return caller
    }
    // Relative, so that it stays on this host whatever the path is.
    if (name !== '' && !FILES.has(name)) return new Response(null, { status: 302, headers: { location: `./${name}/` } })
    this.#files ??= pageFiles()
    const file = name === '' ? 'index.html' : name
    return fileAnswer(file, (await this.#files).get(file) ?? '')
  }

  async #events(request: Request): Promise<Response> {
    const { callers, ponds, stopping } = this.#options
    const caller = await callers.of(request)
    if (isResponse(caller)) return caller
    const free = this.#streams.take(clientOf(request))
    if (free === undefined) throw new Refusal(503, 'Too many pages are open.', { headers: { 'retry-after': '10' } })
    const pollers = new Map([...ponds].map(([name, pond]) => [name, pollerOf(pond)] as const))
    const stream = tickStream({ pollers, caller, signals: [request.signal, stopping], ended: free })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' } })
  }

  async #api(request: Request, name: string, base: string): Promise<Response> {
    const { callers, maxBody } = this.#options
    if (request.method !== 'POST')
      throw new Refusal(405, 'The dashboard is asked with POST.', { headers: { allow: 'POST' } })
    if (isCrossSite(request)) {
      throw new Refusal(403, 'Pages of other origins may not use this dashboard.')
    }
    // Forms of other sites cannot send it.
    if (contentType(request.headers)?.media !== 'application/json') {
      throw unsupportedType('The dashboard takes JSON alone', 'application/json')
    }
    const isLogin = name === 'login'
    const caller = isLogin ? undefined : await callers.of(request)
    if (isResponse(caller)) return caller
    const body = await readBody(request, { maxBody: isLogin ? 4096 : maxBody, bodyTimeout: BODY_TIMEOUT })
    checkObject(body, 'the dashboard')
    if (caller === undefined) {
      const { token } = checkOptions<{ token?: string }>(
        body as object,
        { token: (value) => typeof value === 'string' },
        'login',
      )
      return jsonAnswer({}, { 'set-cookie': await callers.signedIn(request, token ?? '', base) })
    }
    if (name === 'logout') return jsonAnswer({}, { 'set-cookie': callers.signedOut(request, base) })
    const operation = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined
    if (operation === undefined) throw new Refusal(404, 'There is nothing at this path.')
    const { store, ...input } = body as { store?: unknown }
    const done = await operation(
      new Call(request, caller, this.#options, typeof store === 'string' ? store : undefined),
      input,
    )
    return isResponse(done) ? done : jsonAnswer(done)
  }
}

/** @throws Refusal: 405 */
function checkRead({ method }: Request): void {
  if (method !== 'GET' && method !== 'HEAD') {
    throw new Refusal(405, 'The page is read with GET.', { headers: { allow: 'GET, HEAD' } })
  }
}

/**
 * Whether a page of another origin sent it. Browsers that say so are believed, since a proxy in front may have changed Host; of others the
 * Origin must be the host. Programs send neither.
 */
function isCrossSite(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) return site !== 'same-origin' && site !== 'none'
  return isForeign(request, hostOf(request))
}
