import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import { GraphiQL, type GraphiQLProps } from 'graphiql';
import { createRoot } from 'react-dom/client';
import { examples, linkedOperation } from './examples.ts';
import { currentSession } from './session.ts';
import { home } from './settings.ts';

/** Shows GraphiQL in the element. */
export function showGraphiql(parent: HTMLElement): void {
  const linked = linkedOperation();
  createRoot(parent).render(
    <GraphiQL
      fetcher={ask}
      defaultTabs={linked ? [linked, ...examples] : [...examples]}
      {...(linked && { initialQuery: linked.query, initialVariables: linked.variables })}
      isHeadersEditorEnabled
    />,
  );
}

// What is written into the editor of headers comes after, and so before, the credential of the bar.
const ask: GraphiQLProps['fetcher'] = async (operation, options) => {
  const session = currentSession();
  const answer = await fetch(`${home}/graphql`, {
    method: 'POST',
    headers: {
      Accept: 'application/json',
      'Content-Type': 'application/json',
      ...(session && !names(options?.headers, 'authorization') && { Authorization: `Bearer ${session.token}` }),
      ...(options?.headers as Record<string, string> | undefined),
    },
    body: JSON.stringify(operation),
  });
  return answer.json();
};

function names(headers: object | undefined, wanted: string): boolean {
  return Object.keys(headers ?? {}).some((name) => name.toLowerCase() === wanted);
}
