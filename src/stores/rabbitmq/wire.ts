/** Between jobs and messages. A message of another program is a job, too: without our headers it has the settings of its queue. */
import type { ConsumeMessage } from 'amqplib'
import { newId } from '../../values/jobs/ids.ts'
import type { ClaimedJob, Encoded, JobError, JobRecord, NewJob } from '../../values/jobs/records.ts'
import type { DEFAULTS } from '../defaults.ts'
import type { Letter } from './connection/publisher.ts'
import {
  againOf,
  DEAD,
  FOREIGN,
  HEADER,
  isForeignHeader,
  isPassingHeader,
  type Line,
  type Names,
  priorityOf,
  waitHeader,
} from './names.ts'
import { LONGEST_DELAY, LONGEST_WAIT, waitsOf } from './waits.ts'

const TYPES = { json: 'application/json', msgpack: 'application/msgpack', bytes: 'application/octet-stream' } as const
/** RabbitMQ 4's own limit for a queue that sets none. */
const FOREIGN_DELIVERIES = 20
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

type Defaults = typeof DEFAULTS
type Headers = Record<string, unknown>

/** Something that is to wait in a line. */
export interface Parcel {
  queue: string
  line: Line
  body: Buffer
  properties: Letter['properties']
  headers: Headers
  /** Milliseconds until it is due. */
  delay: number
}

export function letterOf(names: Names, { queue, line, body, properties, headers, delay }: Parcel): Letter {
  if (delay <= 0) return { exchange: '', key: names.line(queue, line), body, properties: { ...properties, headers } }
  const waits = waitsOf(delay)
  const delayed = { ...headers, ...Object.fromEntries(waits.map((wait) => [waitHeader(wait), true])) }
  const key = names.line(queue, againOf(priorityOf(line)))
  return { exchange: names.wait(waits[0] ?? LONGEST_WAIT), key, body, properties: { ...properties, headers: delayed } }
}

let lastPlace = 0

/** @param now by our clock, which also gives the place: in µs, or one more than that of the push before */
export function parcelOf(job: NewJob | JobRecord, settings: Defaults, now: number): Parcel {
  const { id, queue, priority, group, trace, data } = job
  lastPlace = Math.max(lastPlace + 1, now * 1000)
  const timeout = job.timeout ?? settings.timeout
  const dueAt = 'dueAt' in job ? job.dueAt : (job.runAt ?? now + job.delay)
  const pushedAt = 'pushedAt' in job ? job.pushedAt : now
  const headers: Headers = {
    ...{ [HEADER.place]: lastPlace, [HEADER.attempts]: job.attempts ?? settings.attempts },
    ...(pushedAt !== Math.floor(lastPlace / 1000) && { [HEADER.pushed]: pushedAt }),
    ...(group !== null && { [HEADER.group]: group }),
    ...(timeout !== null && { [HEADER.timeout]: timeout }),
    ...(trace !== null && { [HEADER.trace]: trace }),
    ...(dueAt > pushedAt && { [HEADER.due]: dueAt }),
    ...('fence' in job && { [HEADER.attempt]: job.attempt, [HEADER.fence]: job.fence }),
  }
  const body = typeof data.body === 'string' ? Buffer.from(data.body) : bufferOf(data.body)
  const properties = { messageId: id, contentType: TYPES[data.encoding] }
  return { queue, line: `${priority}`, body, properties, headers, delay: dueAt - now }
}

/** A job as it came: what goes back into RabbitMQ is made from it. */
export interface Arrived {
  job: ClaimedJob
  /** 0: of a message that another program published. */
  place: number
  /** Milliseconds that a very long delay has left. */
  remaining: number
  /** It came from a queue of another program. */
  isForeign: boolean
  /** Its processes were lost more often than it has attempts. */
  isLost: boolean
  message: ConsumeMessage
}

export function arrivedOf(message: ConsumeMessage, line: Line, settings: Defaults, now: number): Arrived {
  const { properties, fields } = message
  const headers: Headers = properties.headers ?? {}
  // Other programs may write our headers, and wrong.
  const number = (name: string, fallback: number): number => {
    const value = headers[name]
    return typeof value === 'number' && value >= 0 && Number.isSafeInteger(value) ? value : fallback
  }
  const text = (name: string): string | null => {
    const value = headers[name]
    return typeof value === 'string' ? value : null
  }
  // How often RabbitMQ took it back from a process that was lost. Classic queues say only whether they did.
  const isForeign = line === FOREIGN
  const lost = number('x-delivery-count', fields.redelivered && isForeign ? 1 : 0)
  const place = number(HEADER.place, 0)
  const pushedAt = number(HEADER.pushed, place === 0 ? now : Math.floor(place / 1000))
  const dueAt = number(HEADER.due, pushedAt)
  const attempts = number(HEADER.attempts, 0) || settings.attempts
  const attempt = number(HEADER.attempt, 0) + lost
  const job: ClaimedJob = {
    // The id that another program gave its message may be that of many.
    id: !isForeign && ID.test(properties.messageId ?? '') ? properties.messageId : newId(),
    fence: number(HEADER.fence, 0) + lost + 1,
    // RabbitMQ also counts a delivery that came while its consumer ended, and reached nobody. So it has one more before it is dead.
    attempt: lost > 0 ? Math.min(attempt + 1, attempts) : attempt + 1,
    attempts,
    priority: priorityOf(line),
    ...{ group: text(HEADER.group), key: null, trace: text(HEADER.trace) },
    timeout: number(HEADER.timeout, settings.timeout ?? 0) || null,
    ...{ pushedAt, dueAt, data: dataOf(message) },
    ...(place === 0 && { headers: foreignHeaders(message) }),
  }
  const remaining = dueAt - pushedAt > LONGEST_DELAY ? Math.max(dueAt - now, 0) : 0
  // Messages of other programs are also counted when they are given back. Too many are lost only after as many as RabbitMQ 4 allows.
  const isLost = lost > 0 && attempt > (isForeign ? Math.max(attempts, FOREIGN_DELIVERIES) : attempts)
  return { job, place, remaining, isForeign, isLost, message }
}

function foreignHeaders({ properties }: ConsumeMessage): Headers {
  const { headers = {}, contentType, contentEncoding, correlationId, replyTo, type, appId, messageId } = properties
  const all = {
    ...{ 'content-type': contentType, 'content-encoding': contentEncoding, 'correlation-id': correlationId },
    ...{ 'reply-to': replyTo, type, 'app-id': appId, 'message-id': headers[HEADER.message] ?? messageId },
    ...headers,
  }
  return Object.fromEntries(Object.entries(all).filter(([name, value]) => isForeignHeader(name) && value !== undefined))
}

/** @param changes of our headers */
export function copyOf({ job, place, message }: Arrived, queue: string, changes: Headers, delay = 0): Parcel {
  const { content, properties } = message
  const { headers = {}, contentType = TYPES.bytes, correlationId, replyTo, type, appId, messageId } = properties
  const { contentEncoding } = properties
  const kept = Object.entries<unknown>(headers).filter(([name]) => !isPassingHeader(name))
  const own = {
    ...(messageId !== undefined && messageId !== job.id && { [HEADER.message]: messageId }),
    ...{ [HEADER.place]: place, [HEADER.pushed]: job.pushedAt, [HEADER.due]: job.dueAt },
    ...{ [HEADER.attempts]: job.attempts, [HEADER.fence]: job.fence },
  }
  return {
    ...{ queue, line: againOf(job.priority), body: content, delay },
    properties: { correlationId, replyTo, type, appId, contentType, contentEncoding, messageId: job.id },
    headers: { ...Object.fromEntries(kept), ...own, ...changes },
  }
}

/** For the queue of the dead. @param keep milliseconds @returns nothing if it is not kept */
export function deadOf(parcel: Parcel, error: JobError | null, keep: number): Parcel[] {
  const headers = { ...parcel.headers, ...(error !== null && { [HEADER.error]: JSON.stringify(error) }) }
  // RabbitMQ knows no longer time. A job that is kept for longer is kept until somebody takes it.
  const expiration = keep < 2 * LONGEST_WAIT ? { expiration: Math.ceil(keep) } : {}
  const properties = { ...parcel.properties, ...expiration }
  return keep > 0 ? [{ ...parcel, line: DEAD, headers, properties, delay: 0 }] : []
}

/** Most characters of an error's message that a dead job keeps where all of it cannot be written. */
const SHORT_MESSAGE = 2000

/** The same without what AMQP or its client may not be able to write: headers of other programs, and a long error. */
export function writableOf(parcel: Parcel): Parcel {
  const { [HEADER.error]: error, ...headers } = Object.fromEntries(
    Object.entries(parcel.headers).filter(([name]) => !isForeignHeader(name)),
  )
  const { messageId, contentType, expiration } = parcel.properties
  const short = typeof error === 'string' ? { [HEADER.error]: shortened(error) } : {}
  return {
    ...parcel,
    properties: { messageId, ...(contentType !== undefined && { contentType }), ...(expiration && { expiration }) },
    headers: { ...headers, ...short, [HEADER.leftOut]: true },
  }
}

function shortened(error: string): string {
  const { code, name, message } = JSON.parse(error)
  const readable = (text: unknown): string =>
    String(text)
      .slice(0, SHORT_MESSAGE)
      .replace(/\p{Cc}/gu, '\u{FFFD}')
  return JSON.stringify({ code, name: readable(name), message: readable(message) })
}

function dataOf({ content, properties }: ConsumeMessage): Encoded {
  const type =
    String(properties.contentType ?? '')
      .split(';')[0]
      ?.trim()
      .toLowerCase() ?? ''
  // Compressed, or encoded in another way: the handler gets the bytes, and the header.
  if (!/^(?:|identity|binary|utf-?8)$/i.test(String(properties.contentEncoding ?? ''))) {
    return { encoding: 'bytes', body: bytesOf(content) }
  }
  if (/^application\/(?:[\w.+-]+\+)?json$/.test(type)) return { encoding: 'json', body: content.toString() }
  if (type.startsWith('text/')) return { encoding: 'json', body: JSON.stringify(content.toString()) }
  if (/^application\/(?:x-|vnd\.)?msgpack$/.test(type)) return { encoding: 'msgpack', body: bytesOf(content) }
  return { encoding: 'bytes', body: bytesOf(content) }
}

/** What callers see is no Buffer. */
const bytesOf = (buffer: Buffer): Uint8Array => new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
