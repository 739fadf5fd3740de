import type { IncomingMessage, RequestListener } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { Config } from '../../core/config.ts';
import { features } from '../../features.ts';
import type { Context } from '../../request/context.ts';
import { isAnonymous } from '../../http/credentials.ts';
import type { Path } from '../../http/paths.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { directly, type MakeExchange } from '../../http/static-routes.ts';
import { graphqlShortcuts, type GraphqlShortcuts } from './compiled-endpoint.ts';
import { Plans } from './compiled-operations.ts';
import { SharedAnswers, type SharedAnswer } from '../../http/response-cache.ts';

/**
 * The ways past the ordinary one, as far as SHORTCUTS leaves them on (docs/performance.md). Each asks the same services under
 * the same rules and answers the same bytes; what it cannot answer goes the ordinary way.
 */
export interface Shortcuts {
  /** Listens in front of the router. */
  listener(paths: readonly Path[], exchangeOf: MakeExchange, router: RequestListener): RequestListener;
  /** The answer to a request without credentials, which holds for everyone until the table changes; or else what `make` makes. */
  share(ctx: Context, req: IncomingMessage, tally: string, make: () => Promise<SharedAnswer>): Promise<SharedAnswer>;
  /** Those of the GraphQL door. */
  graphql(schema: GraphQLSchema, operations: Operations): GraphqlShortcuts;
}

/** Opens the shortcuts that the configuration leaves on. */
export function openShortcuts(config: Config): Shortcuts {
  const on = (name: Config['shortcuts'][number]) => config.shortcuts.includes(name);
  const plans = new Map(features.flatMap(({ plans: own = {} }) => Object.entries(own)));
  const answers = on('shared') ? new SharedAnswers() : undefined;
  return {
    listener: (paths, exchangeOf, router) => (on('direct') ? directly(paths, exchangeOf, router) : router),
    share: (ctx, req, tally, make) => (answers && isAnonymous(req) ? answers.answer(ctx, `GET ${req.url}`, tally, make) : make()),
    graphql: (schema, operations) =>
      graphqlShortcuts(new Plans(schema, plans, config.graphqlLimits.cost, operations), on('plans'), answers),
  };
}
