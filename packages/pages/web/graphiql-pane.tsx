import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import '@graphiql/plugin-explorer/style.css';
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { ToolbarMenu, UnStyledButton, useGraphiQL } from '@graphiql/react';
import { GraphiQL, HISTORY_PLUGIN, type GraphiQLProps } from 'graphiql';
import { getOperationAST, Kind, OperationTypeNode, parse } from 'graphql';
import { createClient } from 'graphql-sse';
import { useEffect, useState, useSyncExternalStore, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { clientHeaders } from './client.ts';
import { examples, linkedOperation, type Operation } from './examples.ts';
import {
  clearReceipt,
  lastReceipt,
  RECEIPT_REQUEST,
  takeReceipt,
  watchReceipts,
} from './receipt.ts';
import { currentSession, freshToken, watchSession, withToken } from './session.ts';
import { home } from './settings.ts';
import { PLACEHOLDER, snippets, type Snippet } from './snippets.ts';

const ENDPOINT = `${home}/graphql`;
/** The operation with which GraphiQL reads the schema. */
const INTROSPECTION = 'IntrospectionQuery';

/** Where GraphiQL stores the tabs of an earlier visit. */
const STORED_TABS = 'graphiql:tabState';

const plugins = [HISTORY_PLUGIN, explorerPlugin({ showAttribution: false })];

/** Shows GraphiQL in the element. Returns a function that removes it. */
export function showGraphiql(parent: HTMLElement): () => void {
  const linked = linkedOperation();
  // GraphiQL opens the first of the default tabs, and the last open one of an earlier visit, without
  // its variables.
  const first = linked ?? storedTab() ?? examples[0];
  const root = createRoot(parent);
  root.render(
    <GraphiQL
      fetcher={fetcher}
      defaultTabs={linked ? [linked, ...examples] : [...examples]}
      defaultEditorToolsVisibility="variables"
      plugins={plugins}
      initialQuery={first.query}
      initialVariables={first.variables}
    >
      <GraphiQL.Toolbar>
        {({ prettify, merge, copy }) => (
          <>
            {prettify}
            {merge}
            {copy}
            <CopyAs />
          </>
        )}
      </GraphiQL.Toolbar>
      <GraphiQL.Footer>
        <Receipt />
        <Credential />
      </GraphiQL.Footer>
    </GraphiQL>,
  );
  return () => root.unmount();
}

// Returns the operation of the tab that was open at the end of an earlier visit.
function storedTab(): Operation | undefined {
  try {
    const { tabs, activeTabIndex } = JSON.parse(localStorage.getItem(STORED_TABS) ?? '') as {
      tabs: { query: string | null; variables: string | null }[];
      activeTabIndex: number;
    };
    const tab = tabs[activeTabIndex];
    return tab && { query: tab.query ?? '', variables: tab.variables ?? '' };
  } catch {
    return undefined;
  }
}

// What the last operation took.
function Receipt(): ReactNode {
  const receipt = useSyncExternalStore(watchReceipts, lastReceipt);
  return (
    <p className="receipt" role="status">
      {receipt}
    </p>
  );
}

function useSession(): ReturnType<typeof currentSession> {
  const [session, setSession] = useState(currentSession);
  useEffect(() => watchSession(setSession), []);
  return session;
}

// Copies the operation as code. The access token is a placeholder unless the reader chooses it.
function CopyAs(): ReactNode {
  const session = useSession();
  const query = useGraphiQL(({ queryEditor }) => queryEditor);
  const variables = useGraphiQL(({ variableEditor }) => variableEditor);
  const headers = useGraphiQL(({ headerEditor }) => headerEditor);
  const name = useGraphiQL(({ operationName }) => operationName);
  const copy = async (snippet: Snippet, token = session && PLACEHOLDER): Promise<void> => {
    const text = query?.getValue() ?? '';
    const code = snippet({
      home,
      query: text,
      variables: variables?.getValue() ?? '',
      headers: headers?.getValue() ?? '',
      token,
      operation: operationIn(text, name) ?? OperationTypeNode.QUERY,
      ...(name !== undefined && needsName(text) && { operationName: name }),
    });
    await navigator.clipboard.writeText(code);
  };
  return (
    <ToolbarMenu
      button={
        <UnStyledButton
          className="graphiql-toolbar-button copy-as"
          aria-label="Copy as code"
          title="Copy as code"
        >
          {'</>'}
        </UnStyledButton>
      }
    >
      {snippets.map(([label, snippet]) => (
        <ToolbarMenu.Item key={label} onSelect={() => void copy(snippet)}>
          Copy as {label}
        </ToolbarMenu.Item>
      ))}
      {session && (
        <ToolbarMenu.Item onSelect={async () => copy(snippets[0][1], await freshToken())}>
          Copy as curl with my token
        </ToolbarMenu.Item>
      )}
    </ToolbarMenu>
  );
}

function Credential(): ReactNode {
  const session = useSession();
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
  const isReadersOwn = operationName !== INTROSPECTION;
  if (isReadersOwn) clearReceipt();
  // On a small screen, the response may be below what is visible.
  if (isReadersOwn)
    document.querySelector('#explorer .graphiql-response')?.scrollIntoView({ block: 'nearest' });
  if (operationIn(query, operationName) === OperationTypeNode.SUBSCRIPTION) {
    return createClient({ url: ENDPOINT, headers, fetchFn: send }).iterate(request);
  }
  const startedAt = performance.now();
  const response = await send(ENDPOINT, {
    method: 'POST',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ ...request, ...(isReadersOwn && { extensions: RECEIPT_REQUEST }) }),
  });
  const text = await response.text();
  const ms = performance.now() - startedAt;
  return isReadersOwn ? takeReceipt(text, ms, nameIn(query, operationName)) : JSON.parse(text);
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

function nameIn(query: string, operationName?: string | null): string | undefined {
  const document = parse(query);
  return (getOperationAST(document, operationName) ?? getOperationAST(document))?.name?.value;
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
