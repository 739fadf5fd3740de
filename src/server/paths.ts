import { METHODS, type Method, type ReadHeader } from '../kit/route.ts';
import { answerError, type Wording } from './answers.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import { refuseHeaders } from './request.ts';
import type { Services } from './services.ts';
import type { Door } from './telemetry/seen.ts';

/** What is served at one path by one method. */
export interface Endpoint {
  method: Method;
  /** With parameters in braces; the slash at its end makes no difference. */
  path: string;
  /** Which door it belongs to; none where it is absent. */
  door?: Door;
  /** Headers that it reads, for the browser's preflight. */
  reads: readonly ReadHeader[];
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
        exchange.set({ ...preflight(exchange, own, allow), 'Content-Length': '0' });
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

// The interface's three headers (4.5), and `Allow`. Headers beyond Content-Type are named to a browser that asks for them.
function preflight({ req }: Exchange, own: readonly Endpoint[], allow: string): Record<string, string> {
  const asked = new Set((req.headers['access-control-request-headers'] ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const read = new Set(own.flatMap(({ reads }) => reads).filter((name) => asked.has(name.toLowerCase())));
  return {
    Allow: allow,
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': ['Content-Type', ...read].join(', '),
  };
}
