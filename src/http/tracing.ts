import { AsyncLocalStorage } from 'node:async_hooks';
import type { TracingChannel } from 'node:diagnostics_channel';
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
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { Bursts } from '../core/log-throttle.ts';
import type { Config } from '../core/config.ts';
import { asking, hashing } from '../core/tracing-channels.ts';
import type { Exchange } from './exchange.ts';
import type { Seen } from '../telemetry/request-record.ts';

/** How long the last spans may take to be sent, in ms. */
const GOODBYE_MS = 2_000;

type Answer = (exchange: Exchange) => Promise<void>;

/** Where traces go. */
export interface Tracing {
  /** The same answer, with a span around it: one of the client's trace, where the request names one (W3C Trace Context). */
  around(answer: Answer): Answer;
  /** Sends what has not been sent. */
  close(): Promise<void>;
}

/**
 * Opens the traces to OTEL_EXPORTER_OTLP_ENDPOINT: a span for each request and below it one for each thing asked of the database, without
 * values, and for each hash. Loaded only where that is set.
 */
export function openTracing({ otlpEndpoint = '', serviceName, tracedShare }: Config, log: Logger): Tracing {
  tellTroubles(log);
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(tracedShare) }),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `${otlpEndpoint.replace(/\/$/, '')}/v1/traces` }))],
  });
  const tracer = provider.getTracer('shopfront');
  const propagator = new W3CTraceContextPropagator();
  /** The span that is at work, within OpenTelemetry's context. */
  const current = new AsyncLocalStorage<unknown>();

  // Work of no request, such as the look whether the database is there, is no part of a trace.
  const follow = <Work extends object>(channel: TracingChannel<unknown, Work>, describe: (work: Work) => [string, Attributes]) => {
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
  follow(asking, ({ kind, text }) => [kind, { 'db.system.name': 'postgresql', ...(text !== undefined && { 'db.query.text': text }) }]);
  follow(hashing, ({ kind }) => ['hash', { 'shopfront.hash': kind }]);

  return {
    around: (answer) => (exchange) => {
      const { req, res, seen } = exchange;
      const outer = propagator.extract(ROOT_CONTEXT, req.headers, defaultTextMapGetter);
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER }, outer);
      seen.traceId = span.spanContext().traceId;
      res.once('close', () => {
        span.updateName(nameOf(seen)).setAttributes(attributesOf(seen));
        if (seen.end === 'broken' || (seen.status ?? 0) >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      return current.run(trace.setSpan(outer, span), () => answer(exchange));
    },
    async close() {
      await Promise.race([provider.shutdown().catch(() => undefined), setTimeout(GOODBYE_MS, undefined, { ref: false })]);
    },
  };
}

// As metrics name it, so that there are only so many.
function nameOf({ method, row = method, operation }: Seen): string {
  return operation ? `${operation.type} ${operation.label}` : row;
}

// By OpenTelemetry's semantic conventions, where they have a word for it.
function attributesOf({ requestId, method, row, operation, status, errors, user, end }: Seen): Attributes {
  return {
    'http.request.method': method,
    'shopfront.request_id': requestId,
    ...(row !== undefined && { 'http.route': row }),
    ...(operation && { 'graphql.operation.type': operation.type }),
    ...(operation?.name !== undefined && { 'graphql.operation.name': operation.name }),
    ...(status !== undefined && { 'http.response.status_code': status }),
    ...(errors && { 'error.type': errors.join() }),
    ...(user !== undefined && { 'enduser.id': user }),
    ...(end !== 'answered' && { 'shopfront.end': end }),
  };
}

// While the collector is away, each batch meets the same.
function tellTroubles(log: Logger): void {
  const bursts = new Bursts<string>();
  const tell = (reason: string) =>
    bursts.note(reason, (last, times) => log.warn({ event: 'traces.lost', times, reason: last }, 'traces cannot be sent'));
  diag.setLogger({ error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN);
}

function ignore(): void {}
