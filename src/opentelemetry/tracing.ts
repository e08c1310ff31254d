/** Spans of pushes, waits and handlers, by the semantic conventions for messaging. None holds a payload, a key or a message of an error. */
import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { PushCall, RunCall, RunJob } from '../values/runtime/published-calls.ts'
import type { Instruments } from './instruments.ts'
import { spanContextIn, textOf, under } from './trace-context.ts'

const COUNT = 'messaging.batch.message_count'
const ID = 'messaging.message.id'

const attributesOf = (queue: string, operation: 'send' | 'process'): Attributes => ({
  'messaging.system': 'millpond',
  'messaging.destination.name': queue,
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
})

const withError = (attributes: Attributes, code: string | null): Attributes =>
  code === null ? attributes : { ...attributes, 'error.type': code }

export function tracing(tracer: Tracer, measures: Instruments) {
  return {
    pushed(call: PushCall): void {
      const { queue, count, trace: given } = call
      const attributes = attributesOf(queue, 'send')
      const kind = SpanKind.PRODUCER
      const own = count === 1 ? {} : { [COUNT]: count }
      const span = tracer.startSpan(`send ${queue}`, { kind, attributes: { ...attributes, ...own } }, parentOf(given))
      const began = performance.now()
      // Without a tracer there is nothing to follow, and the trace that was given goes on.
      const isNew = given === undefined || spanContextIn(given) !== undefined
      if (isNew && spanContextIn(textOf(span.spanContext())) !== undefined) call.trace = textOf(span.spanContext())
      call.ended = (code, ids) => {
        const [id] = ids
        if (ids.length === 1 && id !== undefined) span.setAttribute(ID, id)
        finish(span, code)
        measures.sent(count, performance.now() - began, withError(attributes, code))
      }
    },

    running(call: RunCall): void {
      const { queue, jobs, isBatch } = call
      const attributes = attributesOf(queue, 'process')
      const now = Date.now()
      for (const job of jobs) waited(queue, job, now)
      measures.started(
        jobs.map(({ wait }) => wait),
        attributes,
      )
      const parents = jobs.map(({ trace: text }) => spanContextIn(text))
      const [first] = jobs
      const parent = under(ROOT_CONTEXT, isBatch ? undefined : parents[0])
      const own = isBatch || first === undefined ? { [COUNT]: jobs.length } : factsOf(first)
      const links = isBatch ? parents.flatMap((linked) => (linked === undefined ? [] : [{ context: linked }])) : []
      const kind = SpanKind.CONSUMER
      const span = tracer.startSpan(`process ${queue}`, { kind, links, attributes: { ...attributes, ...own } }, parent)
      const began = performance.now()
      let isOver = false
      call.around = (run) => context.with(trace.setSpan(context.active(), span), run)
      call.ended = (code) => {
        if (isOver) return
        isOver = true
        finish(span, code)
        measures.processed(performance.now() - began, withError(attributes, code))
      }
    },
  }

  function waited(queue: string, job: RunJob, now: number): void {
    const parent = spanContextIn(job.trace)
    if (parent === undefined) return
    const attributes = { 'messaging.system': 'millpond', 'messaging.destination.name': queue, ...factsOf(job) }
    const options = { kind: SpanKind.INTERNAL, startTime: now - job.wait, attributes }
    tracer.startSpan(`wait ${queue}`, options, under(ROOT_CONTEXT, parent)).end(now)
  }
}

const factsOf = ({ id, attempt }: RunJob): Attributes => ({ [ID]: id, 'millpond.job.attempt': attempt })

/** The current span, unless the call gives the context of another trace. */
function parentOf(given: string | undefined): Context {
  const active = context.active()
  const other = spanContextIn(given)
  const isSame = other === undefined || trace.getSpanContext(active)?.traceId === other.traceId
  return isSame ? active : under(active, other)
}

function finish(span: Span, code: string | null): void {
  if (code !== null) {
    span.setAttribute('error.type', code)
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}
