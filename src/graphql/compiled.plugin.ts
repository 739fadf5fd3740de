import {
  HeaderMap,
  type ApolloServerPlugin,
  type GraphQLRequestListener,
  type GraphQLResponse,
} from '@apollo/server';
import type { FormattedExecutionResult, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import { features } from '../features.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { recordOf, type Dependencies } from '../http/dependencies.ts';
import { visibleError } from '../http/http-error.ts';
import type { CachedResponse, ResponseCache } from '../http/response-cache.ts';
import { formatErrors, graphqlErrorOf } from './errors.ts';
import { compilePlan, type Plan } from './compile.ts';

/** Member of the data of a response that is already written. */
const BODY = Symbol('body');

/**
 * Runs queries of the features' compiled fields without resolvers. Leaves all others, and those
 * that fail, to the resolvers. Caches the response to a request with a `cacheKey`.
 */
export function compiledPlugin(
  dependencies: Dependencies,
  schema: GraphQLSchema,
  cache: ResponseCache,
): ApolloServerPlugin<Context> {
  const roots = new Map(
    features.flatMap(({ compiledFields = {} }) => Object.entries(compiledFields)),
  );
  const plans = new WeakMap<OperationDefinitionNode, Plan | undefined>();
  const listener: GraphQLRequestListener<Context> = {
    responseForOperation: async ({ request, document, operation, contextValue: ctx }) => {
      if (!document || !operation) return null;
      if (!plans.has(operation))
        plans.set(operation, compilePlan(schema, roots, document, operation));
      const plan = plans.get(operation);
      const { variables = {}, extensions: { cost } = {} } = request;
      if (!plan || cost === true) return null;
      const run = () => runPlan(plan, ctx, variables);
      const { cacheKey } = ctx;
      try {
        const response = await (cacheKey === undefined || plan.rowCounts === undefined
          ? run()
          : cache.getOrMake(ctx, cacheKey, plan.rowCounts, run));
        return response ? responseOf({ data: { [BODY]: response.body } }) : null;
      } catch (error) {
        if (!isFinal(error, ctx)) return null;
        const errors = formatErrors(dependencies, [graphqlErrorOf(error)]);
        return responseOf({ data: null, errors });
      }
    },
  };
  return { requestDidStart: async () => listener };
}

/** Writes a result as Apollo Server does. */
export function stringifyResult(result: FormattedExecutionResult): string {
  const body = (result.data as { [BODY]?: string } | null | undefined)?.[BODY];
  return body ?? `${JSON.stringify(result)}\n`;
}

async function runPlan(
  plan: Plan,
  ctx: Context,
  variables: Readonly<Record<string, unknown>>,
): Promise<CachedResponse | undefined> {
  const data = await plan.run(ctx, variables);
  if (data === undefined) return undefined;
  const operation = recordOf(ctx)?.operation;
  return { body: `{"data":${data}}\n`, ...(operation && { operation }) };
}

function responseOf(singleResult: FormattedExecutionResult): GraphQLResponse {
  return { http: { headers: new HeaderMap() }, body: { kind: 'single', singleResult } } as const;
}

// The resolvers would only wait again for an unavailable database, or for an aborted request. They
// run again to format any other error.
function isFinal(error: unknown, { request }: Context): boolean {
  const visible = visibleError(error);
  return (
    visible instanceof DomainError &&
    (visible.code === 'UNAVAILABLE' || request?.signal.aborted === true)
  );
}
