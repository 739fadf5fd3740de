import { METHODS, type Method } from '../api/route.ts';
import { answerError, type Wording } from './responses.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import { refuseHeaders } from './request-headers.ts';
import type { Services } from './dependencies.ts';
import type { Door } from '../telemetry/request-record.ts';

/** How long a browser may keep what it was granted, in seconds: the longest that Chromium keeps it. */
const MAX_AGE_S = 7_200;
/** The name of a header (RFC 9110, 5.1). */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** What is served at one path by one method. */
export interface Endpoint {
  method: Method;
  /** With parameters in braces; the slash at its end makes no difference. */
  path: string;
  /** Which door it belongs to; none where it is absent. */
  door?: Door;
  errorKey: Wording['errorKey'];
  answer: (exchange: Exchange) => Promise<void>;
}

/** One path with all its methods. */
export interface Path {
  /** Under BASE_PATH, with parameters in braces and no slash at its end. */
  path: string;
  answer: (exchange: Exchange) => Promise<void>;
}

/** The paths of the endpoints, and for each what follows from them: OPTIONS, HEAD where GET is, and 405 with `Allow`. */
export function pathsOf(services: Services, endpoints: readonly Endpoint[]): Path[] {
  const byPath = Map.groupBy(endpoints, ({ path }) => services.config.basePath + path.replace(/\/$/, ''));
  const { tracing } = services;
  return [...byPath].map(([path, own]) => {
    const answer = answererOf(services, own);
    return { path, answer: tracing ? tracing.around(answer) : answer };
  });
}

function answererOf({ log }: Services, own: readonly Endpoint[]): Path['answer'] {
  const byMethod = new Map(own.map((endpoint) => [endpoint.method as string, { ...endpoint, row: `${endpoint.method} ${endpoint.path}` }]));
  const door = own[0]?.door ?? 'other';
  const path = own[0]?.path ?? '';
  const methods = METHODS.filter((method) => byMethod.has(method) || method === 'OPTIONS');
  const allow = methods.join(', ');
  const wording: Wording = { errorKey: own[0]?.errorKey ?? 'detail', inputPart: 'body' };
  return async (exchange) => {
    try {
      const { req, res, seen } = exchange;
      seen.door = door;
      seen.row = path;
      refuseHeaders(req);
      if (req.method === 'OPTIONS') {
        exchange.set({ ...crossOrigin(exchange, allow), 'Content-Length': '0' });
        exchange.start(200);
        res.end();
        return;
      }
      const endpoint = byMethod.get(req.method ?? '') ?? (req.method === 'HEAD' ? byMethod.get('GET') : undefined);
      if (!endpoint) throw new HttpError(405, `Method "${req.method}" not allowed.`, { Allow: allow });
      seen.row = endpoint.row;
      await endpoint.answer(exchange);
    } catch (error) {
      answerError(exchange, error, log, wording);
    }
  };
}

// The interface's three headers (4.5), and `Allow`. A browser's preflight is granted the further headers that it asks for: of credentials, a browser sends none by itself.
function crossOrigin({ req: { headers } }: Exchange, allow: string): Record<string, string> {
  const isPreflight = headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  const asked = isPreflight ? (headers['access-control-request-headers'] ?? '').split(',').map((name) => name.trim()) : [];
  const others = asked.filter((name) => NAME.test(name) && name.toLowerCase() !== 'content-type');
  return {
    Allow: allow,
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': ['Content-Type', ...others].join(', '),
    ...(isPreflight && { 'Access-Control-Max-Age': String(MAX_AGE_S) }),
  };
}
