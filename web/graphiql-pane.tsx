import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import { GraphiQL, type GraphiQLProps } from 'graphiql';
import { Kind, parse } from 'graphql';
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

// What the editor of headers says of credentials goes before who is signed in above.
const ask: GraphiQLProps['fetcher'] = async ({ query, variables, operationName }, options) => {
  const session = currentSession();
  const answer = await fetch(`${home}/graphql`, {
    method: 'POST',
    headers: {
      Accept: 'application/json',
      'Content-Type': 'application/json',
      ...(session && !names(options?.headers, 'authorization') && { Authorization: `Bearer ${session.token}` }),
      ...options?.headers,
    },
    body: JSON.stringify({ query, variables, ...(needsName(query) && { operationName }) }),
  });
  return answer.json();
};

function names(headers: object | undefined, wanted: string): boolean {
  return Object.keys(headers ?? {}).some((name) => name.toLowerCase() === wanted);
}

// In a tab that has just been chosen, GraphiQL may still have the name of the operation in the one before.
function needsName(query: string): boolean {
  try {
    return parse(query).definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length > 1;
  } catch {
    return false;
  }
}
