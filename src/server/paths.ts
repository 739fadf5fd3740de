import type { Express, Request, RequestHandler, Response } from 'express';
import { METHODS, type Method, type ReadHeader } from '../kit/route.ts';
import { answerError, type Wording } from './answers.ts';
import { HttpError } from './http-error.ts';
import { refuseTwice } from './request.ts';
import type { Services } from './services.ts';

/** What is served at one path by one method. */
export interface Endpoint {
  method: Method;
  /** With parameters in braces; the slash at its end makes no difference. */
  path: string;
  /** Headers that it reads, for the browser's preflight. */
  reads: readonly ReadHeader[];
  errorKey: Wording['errorKey'];
  answer(req: Request, res: Response): Promise<void>;
}

/** Serves the endpoints, and for each path what follows from them: OPTIONS, HEAD where GET is, and 405 with `Allow`. */
export function servePaths(app: Express, services: Services, endpoints: readonly Endpoint[]): void {
  const byPath = Map.groupBy(endpoints, ({ path }) => services.config.basePath + path.replace(/\/$/, ''));
  for (const [path, own] of byPath) app.all(path === '' ? '/' : path.replace(/\{(\w+)\}/g, ':$1'), handlerOf(services, own));
}

function handlerOf({ log }: Services, own: readonly Endpoint[]): RequestHandler {
  const byMethod = new Map(own.map((endpoint) => [endpoint.method as string, endpoint]));
  const methods = METHODS.filter((method) => byMethod.has(method) || method === 'OPTIONS');
  const allow = methods.join(', ');
  const wording: Wording = { errorKey: own[0]?.errorKey ?? 'detail', inputPart: 'body' };
  return async (req, res) => {
    try {
      refuseTwice(req);
      if (req.method === 'OPTIONS') {
        res
          .set(preflight(req, own, allow))
          .status(200)
          .end();
        return;
      }
      const endpoint = byMethod.get(req.method) ?? (req.method === 'HEAD' ? byMethod.get('GET') : undefined);
      if (!endpoint) throw new HttpError(405, `Method "${req.method}" not allowed.`, { Allow: allow });
      await endpoint.answer(req, res);
    } catch (error) {
      answerError(req, res, error, log, wording);
    }
  };
}

// The interface's three headers (4.5), and `Allow`. Headers beyond Content-Type are named to a browser that asks for them.
function preflight(req: Request, own: readonly Endpoint[], allow: string): Record<string, string> {
  const asked = new Set((req.get('Access-Control-Request-Headers') ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const read = new Set(own.flatMap(({ reads }) => reads).filter((name) => asked.has(name.toLowerCase())));
  return {
    Allow: allow,
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': ['Content-Type', ...read].join(', '),
  };
}
