import type { ApolloServerPlugin } from '@apollo/server';
import type { IncomingMessage } from 'node:http';
import type { Context } from '../../request/context.ts';
import { isAnonymous } from '../../http/credentials.ts';
import type { GraphqlRequest, Plans } from './compiled-operations.ts';
import type { SharedAnswer, SharedAnswers } from '../../http/response-cache.ts';

/** An answer that came by a shortcut, and what it is the answer to. */
export type ShortAnswer = Pick<SharedAnswer, 'body' | 'forms' | 'operation'>;

/** The ways past Apollo Server. Each only answers what goes well, and as Apollo Server would; the rest is left to that. */
export interface GraphqlShortcuts {
  /** Learns from what Apollo Server has parsed, validated and begun to execute. */
  plugin: ApolloServerPlugin<Context>;
  /** The answer that is shared by everyone who sends this body and no credentials. */
  shared(ctx: Pick<Context, 'statements'>, req: IncomingMessage, text: string): ShortAnswer | undefined;
  /** The answer by the plan of the request's document. `text` is the body, and `parsed` its value. */
  planned(ctx: Context, req: IncomingMessage, text: string, parsed: unknown): Promise<ShortAnswer | undefined> | undefined;
}

/** Opens the shortcuts of the GraphQL door: plans, and answers that are shared, as far as they are given. */
export function graphqlShortcuts(plans: Plans, isPlanning: boolean, answers: SharedAnswers | undefined): GraphqlShortcuts {
  return {
    plugin: {
      requestDidStart: async () => ({
        executionDidStart: async ({ request, source, document }) => {
          if (isPlanning) plans.learn(source, request.operationName, document);
        },
      }),
    },
    shared: (ctx, req, text) => (answers && isPlain(req) && isAnonymous(req) ? answers.find(ctx, keyOf(text)) : undefined),
    planned(ctx, req, text, parsed) {
      if (!isPlain(req)) return undefined;
      const request = requestOf(parsed);
      const plan = request && plans.of(request);
      if (!plan || !plan.allows(request.variables)) return undefined;
      const answer = async () => {
        const body = await plan.answer(ctx, request.variables);
        return body === undefined ? undefined : { body, operation: plan.operation };
      };
      const [tally, ...others] = plan.tallies;
      if (!answers || tally === undefined || others.length > 0 || !isAnonymous(req)) return answer();
      return answers.answer(ctx, keyOf(text), tally, answer);
    },
  };
}

// No body of REST's requests, whose answers lie beside these, begins like this.
function keyOf(text: string): string {
  return `POST ${text}`;
}

// Other media types have other rules for status and errors (GraphQL over HTTP, 6).
function isPlain({ headers: { accept } }: IncomingMessage): boolean {
  return accept === undefined || accept === '*/*' || accept === 'application/json';
}

function requestOf(parsed: unknown): GraphqlRequest | undefined {
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { query, operationName, variables, extensions, ...rest } = parsed as Record<string, unknown>;
  if (typeof query !== 'string' || Object.keys(rest).length > 0 || !asksNothing(extensions)) return undefined;
  if (operationName != null && typeof operationName !== 'string') return undefined;
  if (variables != null && (typeof variables !== 'object' || Array.isArray(variables))) return undefined;
  return { query, ...(operationName != null && { operationName }), variables: (variables ?? {}) as Record<string, unknown> };
}

// Apollo Client says in each request which library it is.
function asksNothing(extensions: unknown): boolean {
  if (extensions == null) return true;
  return typeof extensions === 'object' && !Array.isArray(extensions) && Object.keys(extensions).every((name) => name === 'clientLibrary');
}
