import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import { GraphiQL, type GraphiQLProps } from 'graphiql';
import { getOperationAST, Kind, OperationTypeNode, parse } from 'graphql';
import { createClient } from 'graphql-sse';
import { useEffect, useState, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { examples, linkedOperation } from './examples.ts';
import { currentSession, watchSession } from './session.ts';
import { home } from './settings.ts';

/** Shows GraphiQL in the element. */
export function showGraphiql(parent: HTMLElement): void {
  const linked = linkedOperation();
  createRoot(parent).render(
    <GraphiQL
      fetcher={ask}
      defaultTabs={linked ? [linked, ...examples] : [...examples]}
      {...(linked && { initialQuery: linked.query, initialVariables: linked.variables })}
    >
      <GraphiQL.Footer>
        <Credential />
      </GraphiQL.Footer>
    </GraphiQL>,
  );
}

function Credential(): ReactNode {
  const [session, setSession] = useState(currentSession);
  useEffect(() => watchSession(setSession), []);
  return (
    <p className="credential">
      {session ? (
        <>
          Sent along, unless the headers say otherwise: <code>Authorization: Bearer {session.token.slice(0, 8)}…</code>
        </>
      ) : (
        'Sent without credentials, unless the headers bring some: sign in above.'
      )}
    </p>
  );
}

const ask: GraphiQLProps['fetcher'] = async ({ query, variables, operationName }, options) => {
  const asked = { query, variables, ...(operationName != null && needsName(query) && { operationName }) };
  const headers = credentialed(options?.headers);
  if (operationIn(query, operationName) === OperationTypeNode.SUBSCRIPTION) {
    return createClient({ url: `${home}/graphql`, headers }).iterate(asked);
  }
  const answer = await fetch(`${home}/graphql`, {
    method: 'POST',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(asked),
  });
  return answer.json();
};

// What the editor of headers says of credentials goes before who is signed in above.
function credentialed(headers: Record<string, string> = {}): Record<string, string> {
  const session = currentSession();
  return { ...(session && !names(headers, 'authorization') && { Authorization: `Bearer ${session.token}` }), ...headers };
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

// In a tab that has just been chosen, GraphiQL may still have the name of the operation in the one before.
function needsName(query: string): boolean {
  try {
    return parse(query).definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length > 1;
  } catch {
    return false;
  }
}
