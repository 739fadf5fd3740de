import { OperationTypeNode } from 'graphql';

/** Placeholder of the access token. Shells replace it by the variable. */
export const PLACEHOLDER = '$TOKEN';

/** An operation as the editors have it. */
interface Request {
  /** Address of the server, without a path of the API. */
  home: string;
  query: string;
  operation: OperationTypeNode;
  operationName?: string;
  /** JSON, or nothing. */
  variables: string;
  /** JSON, or nothing. */
  headers: string;
  /** Access token or placeholder; undefined if signed out. */
  token: string | undefined;
}

/** Writes a request as code. */
export type Snippet = (request: Request) => string;

/** The kinds of code, by name. */
export const snippets: readonly [[string, Snippet], ...[string, Snippet][]] = [
  ['curl', curl],
  ['fetch', fetchCall],
  ['Apollo Client', apolloClient],
];

function curl(request: Request): string {
  const isSubscription = request.operation === OperationTypeNode.SUBSCRIPTION;
  const headers = httpHeadersOf(request);
  return [
    `curl${isSubscription ? ' -N' : ''} ${quoted(endpointOf(request))}`,
    ...Object.entries(headers).map(([name, value]) =>
      value.includes(PLACEHOLDER) ? `-H "${name}: ${value}"` : `-H ${quoted(`${name}: ${value}`)}`,
    ),
    `-d ${quoted(JSON.stringify(bodyOf(request)))}`,
  ].join(' \\\n  ');
}

function fetchCall(request: Request): string {
  const isSubscription = request.operation === OperationTypeNode.SUBSCRIPTION;
  const headers = httpHeadersOf(request);
  return `const response = await fetch(${literal(endpointOf(request))}, {
  method: 'POST',
  headers: ${indented(headers)},
  body: JSON.stringify({
    query: ${template(request.query)},${member('variables', parsed(request.variables), 4)}${member('operationName', request.operationName, 4)}
  }),
});
${
  isSubscription
    ? 'for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);'
    : 'const { data, errors } = await response.json();'
}
`;
}

function apolloClient(request: Request): string {
  const { operation } = request;
  const headers = headersOf(request);
  const isSubscription = operation === OperationTypeNode.SUBSCRIPTION;
  const hasHeaders = Object.keys(headers).length > 0;
  const [imports, link] = isSubscription
    ? [
        `import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { createClient } from 'graphql-ws';`,
        `new GraphQLWsLink(
    createClient({ url: ${literal(endpointOf(request).replace('http', 'ws'))}${hasHeaders ? `, connectionParams: ${indented(headers, 4)}` : ''} }),
  )`,
      ]
    : [
        `import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';`,
        `new HttpLink({ uri: ${literal(endpointOf(request))}${hasHeaders ? `, headers: ${indented(headers, 2)}` : ''} })`,
      ];
  const document = `gql${template(request.query)}`;
  const call = {
    query: `const { data } = await client.query({\n  query: ${document}`,
    mutation: `const { data } = await client.mutate({\n  mutation: ${document}`,
    subscription: `client.subscribe({\n  query: ${document}`,
  }[operation];
  return `${imports}

const client = new ApolloClient({
  link: ${link},
  cache: new InMemoryCache(),
});
${call},${member('variables', parsed(request.variables), 2)}
})${isSubscription ? '.subscribe(console.log)' : ''};
`;
}

function endpointOf({ home }: Request): string {
  return `${home}/graphql`;
}

function bodyOf({ query, variables, operationName }: Request): object {
  return { query, variables: parsed(variables), operationName };
}

function httpHeadersOf(request: Request): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    ...(request.operation === OperationTypeNode.SUBSCRIPTION && { Accept: 'text/event-stream' }),
    ...headersOf(request),
  };
}

// Typed credentials are secret too.
function headersOf({ headers, token }: Request): Record<string, string> {
  const typed = Object.entries(parsed(headers) ?? {}).map(([name, value]): [string, string] => [
    name,
    isCredential(name) ? String(value).replace(/\S+$/, PLACEHOLDER) : String(value),
  ]);
  const hasCredential = typed.some(([name]) => isCredential(name));
  return {
    ...Object.fromEntries(typed),
    ...(!hasCredential && token !== undefined && { Authorization: `Bearer ${token}` }),
  };
}

function isCredential(name: string): boolean {
  return /^(authorization|x-session-?id)$/i.test(name);
}

// Editors may contain text that is not JSON yet.
function parsed(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function literal(text: string): string {
  return JSON.stringify(text);
}

function template(text: string): string {
  return `\`${text.replaceAll(/[\\`]|\$\{/g, String.raw`\$&`)}\``;
}

function member(name: string, value: object | string | undefined, spaces: number): string {
  return value === undefined ? '' : `\n${' '.repeat(spaces)}${name}: ${indented(value, spaces)},`;
}

function indented(value: object | string, spaces = 2): string {
  return JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(spaces)}`);
}
