/** Instruments, by the semantic conventions for messaging where they have one. */
import type { Attributes, Meter } from '@opentelemetry/api'
import type { StoreOperation } from '../values/operations/store-operation.ts'

export type Instruments = ReturnType<typeof instruments>

const SECONDS = { unit: 's' }
const MESSAGES = { unit: '{message}' }

export function instruments(meter: Meter) {
  const sendTime = meter.createHistogram('messaging.client.operation.duration', {
    ...SECONDS,
    description: 'Time until the store has answered a push.',
  })
  const sent = meter.createCounter('messaging.client.sent.messages', {
    ...MESSAGES,
    description: 'Jobs that were pushed.',
  })
  const consumed = meter.createCounter('messaging.client.consumed.messages', {
    ...MESSAGES,
    description: 'Jobs that handlers were given.',
  })
  const processTime = meter.createHistogram('messaging.process.duration', {
    ...SECONDS,
    description: 'Time that a handler ran.',
  })
  const wait = meter.createHistogram('millpond.job.wait', {
    ...SECONDS,
    description: 'Time from when a job was due to when it started.',
  })
  const operationTime = meter.createHistogram('millpond.store.operation.duration', {
    ...SECONDS,
    description: 'Time of a call to the store.',
  })
  return {
    sent(count: number, ms: number, attributes: Attributes): void {
      sendTime.record(ms / 1000, attributes)
      sent.add(count, attributes)
    },
    /** @param waits in milliseconds */
    started(waits: readonly number[], attributes: Attributes): void {
      consumed.add(waits.length, attributes)
      for (const ms of waits) wait.record(ms / 1000, attributes)
    },
    processed(ms: number, attributes: Attributes): void {
      processTime.record(ms / 1000, attributes)
    },
    operation({ store, name, ms, code }: StoreOperation): void {
      const error = code === null ? {} : { 'error.type': code }
      operationTime.record(ms / 1000, { 'millpond.store': store, 'millpond.operation': name, ...error })
    },
  }
}
