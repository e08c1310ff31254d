/** The SDK of OpenTelemetry, as far as the tests need it. */
import { context, type HrTime } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

export interface Measured {
  attributes: Readonly<Record<string, unknown>>
  value: unknown
}

export function sdk() {
  const spans = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  return {
    providers: { tracerProvider, meterProvider },
    tracer: tracerProvider.getTracer('test'),
    spans: (): ReadableSpan[] => spans.getFinishedSpans(),
    named: (name: string): ReadableSpan[] => spans.getFinishedSpans().filter((span) => span.name === name),
    async metrics(): Promise<Map<string, Measured[]>> {
      exporter.reset()
      await reader.forceFlush()
      const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      return new Map(all.map(({ descriptor, dataPoints }) => [descriptor.name, [...dataPoints]]))
    },
    end: () => Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]),
  }
}

export const millis = ([seconds, nanos]: HrTime): number => seconds * 1000 + nanos / 1e6
