/** W3C trace context, level 1: `00-TRACE-SPAN-FLAGS`, as it travels with jobs. */
import { type Context, isSpanContextValid, type SpanContext, trace } from '@opentelemetry/api'

/** Versions above 00 may add parts; `ff` is none. */
const FORM = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-|$)/

/** undefined: the text is no valid one. */
export function spanContextIn(text: string | null | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = FORM.exec(text ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  const context: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true }
  return isSpanContextValid(context) ? context : undefined
}

export function textOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 1).toString(16).padStart(2, '0')}`
}

/** The context with this span as the current one; as it is where there is none. */
export function under(context: Context, span: SpanContext | undefined): Context {
  return span === undefined ? context : trace.setSpanContext(context, span)
}
