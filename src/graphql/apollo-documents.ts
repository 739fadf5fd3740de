import { HeaderMap, type ApolloServerPlugin, type HTTPGraphQLResponse } from '@apollo/server';
import { Kind, type DocumentNode } from 'graphql';
import type { Context } from '../request/context.ts';
import { recordOf } from '../http/dependencies.ts';
import type { Response } from 'express';
import { graphqlTypeFor } from '../http/responses.ts';
import type { RequestRecord } from '../telemetry/request-record.ts';
import { createRefusalCache, toErrors, type Documents, type Refusal } from './documents.ts';

/** Stands in for a refused document. Apollo Server executes nothing, as it has no operation. */
const REFUSED: DocumentNode = { kind: Kind.DOCUMENT, definitions: [] };

/** Response to a refused document, for every client, and the codes of its errors. */
interface RefusedResponse {
  response: HTTPGraphQLResponse;
  codes: readonly string[];
}

/** Gives Apollo Server the document of each request, and caches its responses to refused ones. */
export class ApolloDocuments {
  private readonly refused = new WeakSet<RequestRecord>();
  private readonly responses = createRefusalCache<RefusedResponse>();

  constructor(private readonly documents: Documents) {}

  /** Sets the document, so that Apollo Server neither parses nor validates, or sends its errors. */
  readonly plugin: ApolloServerPlugin<Context> = {
    requestDidStart: async ({ contextValue }) => {
      let refusal: Refusal | undefined;
      return {
        didResolveSource: async (request) => {
          const result = this.documents.read(request.source);
          if ('kind' in result) Object.assign(request, { document: result });
          else {
            refusal = result;
            const record = recordOf(contextValue);
            if (record) this.refused.add(record);
            Object.assign(request, { document: REFUSED, errors: toErrors(result.httpErrors) });
          }
        },
        responseForOperation: async ({ request: { http } }) => {
          if (!refusal) return null;
          const headers = new HeaderMap();
          // As for errors before Apollo Server, the client need not accept the media type.
          if (refusal.isConditional) {
            const accept = http?.headers.get('accept') ?? '';
            headers.set('content-type', graphqlTypeFor({ headers: { accept } }));
          }
          return {
            http: { status: 400, headers },
            body: { kind: 'single', singleResult: { errors: refusal.httpErrors } },
          };
        },
      };
    },
  };

  /** Executes the request, unless the response to its refused document is cached. */
  async respond(
    { req, locals: { record } }: Response,
    document: unknown,
    execute: () => Promise<HTTPGraphQLResponse>,
  ): Promise<HTTPGraphQLResponse> {
    if (typeof document !== 'string') return execute();
    // The media type and the status depend on `Accept`.
    const key = `${req.headers.accept ?? ''}\n${document}`;
    const previous = this.responses.get(key);
    if (previous) {
      record.errors = previous.codes;
      return previous.response;
    }
    const response = await execute();
    if (this.refused.has(record)) this.responses.set(key, { response, codes: record.errors ?? [] });
    return response;
  }
}
