/** Between jobs and messages. A message of another program is a job, too: without our headers it has the settings of its queue. */
import type { ConsumeMessage } from 'amqplib'
import type { ClaimedJob, Encoded, JobError, JobRecord, NewJob, QueueSettings } from '../../store.ts'
import { newId } from '../../values/ids.ts'
import type { Letter } from './connection/publisher.ts'
import { againOf, HEADER, isBrokerHeader, isOwnHeader, type Line, type Names, priorityOf } from './names.ts'

const TYPES = { json: 'application/json', msgpack: 'application/msgpack', bytes: 'application/octet-stream' } as const
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

type Headers = Record<string, unknown>

/** Something that is to wait in a line. */
export interface Parcel {
  queue: string
  line: Line
  body: Buffer
  id: string
  contentType: string
  headers: Headers
  /** Milliseconds until it is due. */
  delay: number
}

/** The shortest delay that the broker keeps, in ms; what is left of a longer one is rounded up to it. */
const SHORTEST = 32
/** RabbitMQ's longest time to live is shorter than twice this. */
const LONGEST = 2 ** 31

/**
 * A delay is served in steps: a queue for each power of two, in which all messages live equally long, so that none waits behind a longer
 * one. What is left of the delay when a step is over goes with the message, and the worker that gets it sends it on.
 */
export const stepOf = (delay: number): number =>
  delay <= SHORTEST ? SHORTEST : Math.min(2 ** Math.floor(Math.log2(delay)), LONGEST)

export function letterOf(names: Names, { queue, line, body, id, contentType, headers, delay }: Parcel): Letter {
  const properties = { messageId: id, contentType, headers }
  if (delay <= 0) return { exchange: '', key: names.line(queue, line), body, properties }
  const step = stepOf(delay)
  const left = { ...headers, ...(delay > step && { [HEADER.remaining]: delay - step }) }
  const key = names.line(queue, againOf(priorityOf(line)))
  return { exchange: names.delay(step), key, body, properties: { ...properties, headers: left } }
}

let lastPlace = 0

/** @param now by our clock */
export function parcelOf(job: NewJob | JobRecord, settings: QueueSettings, now: number): Parcel {
  const { id, queue, priority, group, trace, data } = job
  lastPlace = Math.max(lastPlace + 1, now * 1000)
  const attempts = job.attempts ?? settings.attempts
  const timeout = job.timeout ?? settings.timeout ?? null
  const headers: Headers = { [HEADER.place]: lastPlace, [HEADER.attempts]: attempts }
  if (group !== null) headers[HEADER.group] = group
  if (timeout !== null) headers[HEADER.timeout] = timeout
  if (trace !== null) headers[HEADER.trace] = trace
  const dueAt = 'dueAt' in job ? job.dueAt : (job.runAt ?? now + job.delay)
  const pushedAt = 'pushedAt' in job ? job.pushedAt : now
  if (pushedAt !== Math.floor(lastPlace / 1000)) headers[HEADER.pushed] = pushedAt
  if (dueAt > pushedAt) headers[HEADER.due] = dueAt
  if ('fence' in job) Object.assign(headers, { [HEADER.attempt]: job.attempt, [HEADER.fence]: job.fence })
  const body = typeof data.body === 'string' ? Buffer.from(data.body) : bufferOf(data.body)
  return { queue, line: `${priority}`, body, id, contentType: TYPES[data.encoding], headers, delay: dueAt - now }
}

/** A job as it came: what goes back into RabbitMQ is made from it. */
export interface Arrived {
  job: ClaimedJob
  place: number
  /** Milliseconds of its delay that are left. */
  left: number
  message: ConsumeMessage
}

export function arrivedOf(message: ConsumeMessage, line: Line, settings: QueueSettings, now: number): Arrived {
  const { properties } = message
  const headers: Headers = properties.headers ?? {}
  const number = (name: string, fallback: number): number => {
    const value = headers[name]
    return typeof value === 'number' ? value : fallback
  }
  // How often the broker took it back from a process that was lost with it.
  const lost = number('x-delivery-count', 0)
  const place = number(HEADER.place, 0)
  const pushedAt = number(HEADER.pushed, place === 0 ? now : Math.floor(place / 1000))
  const dueAt = number(HEADER.due, pushedAt)
  const group = headers[HEADER.group]
  const trace = headers[HEADER.trace]
  const given = Object.entries(headers).filter(([name]) => !isOwnHeader(name))
  const job: ClaimedJob = {
    id: ID.test(properties.messageId ?? '') ? properties.messageId : newId(),
    fence: number(HEADER.fence, 0) + lost + 1,
    attempt: number(HEADER.attempt, 0) + lost + 1,
    attempts: number(HEADER.attempts, settings.attempts ?? 1),
    priority: priorityOf(line),
    group: typeof group === 'string' ? group : null,
    key: null,
    timeout: number(HEADER.timeout, settings.timeout ?? 0) || null,
    trace: typeof trace === 'string' ? trace : null,
    pushedAt,
    dueAt,
    data: dataOf(message),
    ...(given.length > 0 && { headers: Object.fromEntries(given) }),
  }
  return { job, place, left: Math.min(number(HEADER.remaining, 0), dueAt - now), message }
}

/** @param changes of our headers; undefined takes one away */
export function copyOf({ job, message }: Arrived, queue: string, changes: Headers, delay = 0): Parcel {
  const { properties, content } = message
  const kept = Object.entries<unknown>(properties.headers ?? {}).filter(
    ([name]) => name !== HEADER.remaining && !isBrokerHeader(name),
  )
  const set = { [HEADER.attempts]: job.attempts, [HEADER.fence]: job.fence, [HEADER.due]: job.dueAt, ...changes }
  return {
    ...{ queue, line: againOf(job.priority), body: content, id: job.id, delay },
    contentType: properties.contentType ?? TYPES.bytes,
    headers: { ...Object.fromEntries(kept), ...set },
  }
}

/** For the queue of dead jobs. @param keep milliseconds */
export function deadLetter(names: Names, parcel: Parcel, error: JobError, keep: number): Letter {
  const { queue, id, body, contentType } = parcel
  const headers = { ...parcel.headers, [HEADER.error]: JSON.stringify(error) }
  // RabbitMQ's longest time; a job that is kept for longer is kept until somebody takes it.
  const expiration = keep < LONGEST ? { expiration: keep } : {}
  return { exchange: '', key: names.dead(queue), body, properties: { messageId: id, contentType, headers, ...expiration } }
}

function dataOf({ content, properties }: ConsumeMessage): Encoded {
  const type = String(properties.contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/(?:[\w.+-]+\+)?json$/.test(type)) return { encoding: 'json', body: content.toString() }
  if (type.startsWith('text/')) return { encoding: 'json', body: JSON.stringify(content.toString()) }
  if (/^application\/(?:x-|vnd\.)?msgpack$/.test(type)) return { encoding: 'msgpack', body: content }
  return { encoding: 'bytes', body: content }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
