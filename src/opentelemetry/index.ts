/**
 * `millpond/opentelemetry`: spans and metrics by the API of OpenTelemetry, of all ponds of the process. It listens to the
 * channels of `node:diagnostics_channel`; where it is not loaded, jobs cost nothing more.
 *
 *   send QUEUE (producer) ──► trace travels with the job ──┬─► wait QUEUE
 *                                                          └─► process QUEUE (consumer): the handler runs in its context
 *
 * A handler for batches has one span, with a link to each job's trace.
 */
import '../values/runtime/runtime.ts'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api'
import type { Millpond } from '../pond/millpond.ts'
import type { StoreOperation } from '../values/operations/store-operation.ts'
import { checkOptions, type Rules } from '../values/options/options.ts'
import type { PushCall, RunCall } from '../values/runtime/published-calls.ts'
import { gauges } from './gauges.ts'
import { instruments } from './instruments.ts'
import { tracing } from './tracing.ts'

export interface InstrumentOptions {
  /** The global one unless set. */
  tracerProvider?: TracerProvider | undefined
  /** The global one unless set. */
  meterProvider?: MeterProvider | undefined
  /** Also tells the depth of its queues, and their workers, whenever metrics are collected. None unless set. */
  pond?: Millpond | undefined
}

const NAME = 'millpond'
const isObject = (value: unknown) => (typeof value === 'object' && value !== null) || 'an object'
const RULES: Rules<InstrumentOptions> = { tracerProvider: isObject, meterProvider: isObject, pond: isObject }

/** @returns ends it @throws InvalidOption */
export function instrument(options?: InstrumentOptions): () => void {
  const { tracerProvider, meterProvider, pond } = checkOptions(options, RULES, 'instrument')
  const meter = (meterProvider ?? metrics).getMeter(NAME)
  const measures = instruments(meter)
  const tracer = tracing((tracerProvider ?? trace).getTracer(NAME), measures)
  // Each channel has one publisher, in `src/`, and these are its messages.
  const listeners: [string, (message: unknown) => void][] = [
    ['millpond:push', (message) => tracer.pushed(message as PushCall)],
    ['millpond:run', (message) => tracer.running(message as RunCall)],
    ['millpond:operation', (message) => measures.operation(message as StoreOperation)],
  ]
  for (const [channel, listener] of listeners) subscribe(channel, listener)
  const endGauges = pond === undefined ? () => {} : gauges(meter, pond)
  return () => {
    for (const [channel, listener] of listeners) unsubscribe(channel, listener)
    endGauges()
  }
}
