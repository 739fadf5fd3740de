import { AsyncLocalStorage } from 'node:async_hooks';
import type { TracingChannel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import {
  defaultTextMapGetter,
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { databaseChannel, hashingChannel } from '../core/tracing-channels.ts';
import type { RequestRecord } from './request-record.ts';

/** Maximum time to send the last spans, in ms. */
const FLUSH_TIMEOUT_MS = 2_000;

/** Traces requests. */
export interface Tracing {
  /**
   * Runs the request in a span of the client's trace, if the request has one (W3C Trace Context).
   */
  run(req: IncomingMessage, res: ServerResponse, record: RequestRecord, next: () => void): void;
  /** Sends the remaining spans. */
  close(): Promise<void>;
}

/**
 * Starts sending traces to OTEL_EXPORTER_OTLP_ENDPOINT: a span for each request with child spans
 * for each database call, without values, and each password hash. Loaded only if that is set.
 */
export function openTracing(
  { otelExporterOtlpEndpoint: endpoint = '' }: Config,
  log: Logger,
): Tracing {
  const warn = (reason: string) =>
    log.warn({ event: 'traces.lost', reason }, 'Traces could not be sent');
  const ignore = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    DiagLogLevel.WARN,
  );
  // Also reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG.
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shopfront' }).merge(
      // Reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [
      new BatchSpanProcessor(
        new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` }),
      ),
    ],
  });
  const tracer = provider.getTracer('shopfront');
  const propagator = new W3CTraceContextPropagator();
  /** OpenTelemetry context with the current span. */
  const current = new AsyncLocalStorage<unknown>();

  // Work outside of requests, such as health checks of the database, is not traced.
  const traceChannel = <Work extends object>(
    channel: TracingChannel<unknown, Work>,
    describe: (work: Work) => [string, Attributes],
  ) => {
    const ends = new WeakMap<Work, (failed: boolean) => void>();
    channel.start.bindStore(current, (work) => {
      const outer = current.getStore() as typeof ROOT_CONTEXT | undefined;
      if (!outer) return undefined;
      const [name, attributes] = describe(work);
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, outer);
      ends.set(work, (failed) => {
        if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      return trace.setSpan(outer, span);
    });
    channel.asyncEnd.subscribe((message) => {
      const work = message as Work & { error?: unknown };
      ends.get(work)?.(work.error !== undefined);
    });
  };
  traceChannel(databaseChannel, ({ kind, text }) => [
    kind,
    { 'db.system.name': 'postgresql', 'db.query.text': text },
  ]);
  traceChannel(hashingChannel, ({ kind }) => ['hash', { 'shopfront.hash': kind }]);

  return {
    run(req, res, record, next) {
      const outer = propagator.extract(ROOT_CONTEXT, req.headers, defaultTextMapGetter);
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER }, outer);
      record.traceId = span.spanContext().traceId;
      res.once('close', () => {
        span.updateName(nameOf(record)).setAttributes(attributesOf(record));
        if (record.end === 'broken' || (record.status ?? 0) >= 500)
          span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      current.run(trace.setSpan(outer, span), next);
    },
    async close() {
      await Promise.race([
        provider.shutdown().catch(() => undefined),
        setTimeout(FLUSH_TIMEOUT_MS, undefined, { ref: false }),
      ]);
    },
  };
}

// As in metrics, so that the number of names is limited.
function nameOf({ method, endpoint = method, operation }: RequestRecord): string {
  return operation ? `${operation.type} ${operation.label}` : endpoint;
}

// Names of OpenTelemetry's semantic conventions, where they exist. Undefined attributes are ignored.
function attributesOf(record: RequestRecord): Attributes {
  const { operation, end } = record;
  return {
    'http.request.method': record.method,
    'shopfront.request_id': record.requestId,
    'http.route': record.endpoint,
    'graphql.operation.type': operation?.type,
    'graphql.operation.name': operation?.name,
    'http.response.status_code': record.status,
    'error.type': record.errors?.join(),
    'enduser.id': record.user,
    'shopfront.end': end === 'answered' ? undefined : end,
  };
}
