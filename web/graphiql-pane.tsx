import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import { GraphiQL, type GraphiQLProps } from 'graphiql';
import { getOperationAST, Kind, OperationTypeNode, parse } from 'graphql';
import { createClient } from 'graphql-sse';
import { useEffect, useState, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { clientHeaders } from './client.ts';
import { examples, linkedOperation } from './examples.ts';
import { currentSession, watchSession, withToken } from './session.ts';
import { home } from './settings.ts';

const ENDPOINT = `${home}/graphql`;
/** The operation with which GraphiQL reads the schema. */
const INTROSPECTION = 'IntrospectionQuery';

/** Shows GraphiQL in the element. Returns a function that removes it. */
export function showGraphiql(parent: HTMLElement): () => void {
  const linked = linkedOperation();
  const root = createRoot(parent);
  root.render(
    <GraphiQL
      fetcher={fetcher}
      defaultTabs={linked ? [linked, ...examples] : [...examples]}
      {...(linked && { initialQuery: linked.query, initialVariables: linked.variables })}
    >
      <GraphiQL.Footer>
        <Credential />
      </GraphiQL.Footer>
    </GraphiQL>,
  );
  return () => root.unmount();
}

function Credential(): ReactNode {
  const [session, setSession] = useState(currentSession);
  useEffect(() => watchSession(setSession), []);
  return (
    <p className="credential">
      {session ? (
        <>
          Sent unless the headers have other credentials:{' '}
          <code>Authorization: Bearer {session.token.slice(0, 8)}…</code>
        </>
      ) : (
        'Sent without credentials unless the headers have some: sign in above.'
      )}
    </p>
  );
}

const fetcher: GraphiQLProps['fetcher'] = async ({ query, variables, operationName }, options) => {
  const request = {
    query,
    variables,
    ...(operationName != null && needsName(query) && { operationName }),
  };
  const typed = options?.headers ?? {};
  const headers = { ...clientHeaders, ...typed };
  const send = senderOf(typed);
  // On a small screen, the response may be below what is visible.
  if (operationName !== INTROSPECTION)
    document.querySelector('#explorer .graphiql-response')?.scrollIntoView({ block: 'nearest' });
  if (operationIn(query, operationName) === OperationTypeNode.SUBSCRIPTION) {
    return createClient({ url: ENDPOINT, headers, fetchFn: send }).iterate(request);
  }
  const response = await send(ENDPOINT, {
    method: 'POST',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(request),
  });
  return response.json();
};

interface Init extends RequestInit {
  headers: Record<string, string>;
}

// Credentials in the headers editor take precedence over those of the bar.
function senderOf(
  typed: Record<string, string>,
): (address: string, init: Init) => Promise<Response> {
  if (names(typed, 'authorization')) return fetch;
  return (address, init) =>
    withToken((token) =>
      fetch(address, {
        ...init,
        headers: { ...init.headers, ...(token && { Authorization: `Bearer ${token}` }) },
      }),
    );
}

function names(headers: object, wanted: string): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === wanted);
}

function operationIn(query: string, operationName?: string | null): OperationTypeNode | undefined {
  try {
    const document = parse(query);
    return (getOperationAST(document, operationName) ?? getOperationAST(document))?.operation;
  } catch {
    return undefined;
  }
}

// After a change of tabs, GraphiQL may still have the operation name of the previous tab.
function needsName(query: string): boolean {
  try {
    return (
      parse(query).definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length > 1
    );
  } catch {
    return false;
  }
}
