import type { Request } from 'express';

const JSON_PARAMETERS = ['variables', 'extensions'];
const OPTIONAL_PARAMETERS = ['operationName', ...JSON_PARAMETERS];

/**
 * Returns the body of a request without empty optional parameters: they count as absent (GraphQL
 * over HTTP, 5), as null does.
 */
export function withoutEmptyMembers<Body>(body: Body): Body {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const members = body as Readonly<Record<string, unknown>>;
  const empty = OPTIONAL_PARAMETERS.filter((name) => members[name] === '');
  if (empty.length === 0) return body;
  return Object.fromEntries(
    Object.entries(members).filter(([name]) => !empty.includes(name)),
  ) as Body;
}

/** Does the same for a query string. Keeps a parameter that is given twice, which is an error. */
export function withoutEmptyParameters(search: string): string {
  const params = new URLSearchParams(search);
  const empty = OPTIONAL_PARAMETERS.filter((name) => {
    const [value, ...others] = params.getAll(name);
    const isNull = JSON_PARAMETERS.includes(name) && value?.trim() === 'null';
    return (value === '' || isNull) && others.length === 0;
  });
  if (empty.length === 0) return search;
  for (const name of empty) params.delete(name);
  return `?${params.toString()}`;
}

/** Returns the JSON text of a request (http/body.ts), or undefined without a body. */
export function textIn(req: Request): string | undefined {
  return req.body as string | undefined;
}

/** Returns the query string of the URL with its question mark, or an empty string. */
export function queryStringOf({ url }: Request): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}
