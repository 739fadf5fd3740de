import { settings } from './settings.ts';

/** A GraphQL operation of an explorer. */
export interface Operation {
  query: string;
  /** JSON. */
  variables: string;
}

/** Example operations. */
export const examples: readonly [Operation, ...Operation[]] = [
  {
    query: `# The cheapest products in pages: set "after" to endCursor for the next page.
query Products($first: Int!, $after: String) {
  products(first: $first, after: $after, orderBy: { field: PRICE }) {
    totalCount
    nodes {
      pk
      name
      price
    }
    pageInfo {
      hasNextPage
      endCursor
    }
  }
}
`,
    variables: '{\n  "first": 5,\n  "after": null\n}',
  },
  {
    query: `# The signed-in user: sign in above.
query Me($items: Int!) {
  me {
    username
    fullName
    scopes
    items(first: $items) {
      totalCount
      nodes {
        itemId
      }
    }
  }
}
`,
    variables: '{\n  "items": 5\n}',
  },
  {
    query: `# Adds an item to your own: sign in above.
mutation AddItem($itemId: String!) {
  addItem(itemId: $itemId) {
    itemId
    owner {
      username
    }
  }
}
`,
    variables: '{\n  "itemId": "telescope"\n}',
  },
  {
    query: `# Changes of products from now on, until you stop it.
subscription ProductChanges {
  productChanged {
    kind
    pk
    at
    product {
      name
      price
    }
  }
}
`,
    variables: '',
  },
];

/** The operation in the address of this page: `?query=…&variables=…`. */
export function linkedOperation(): Operation | undefined {
  const search = new URLSearchParams(location.search);
  const query = search.get('query');
  return query === null ? undefined : { query, variables: search.get('variables') ?? '' };
}

/** The address that opens an operation in GraphiQL. */
export function graphiqlLink({ query, variables }: Operation): string {
  const search = new URLSearchParams({ query, ...(variables !== '' && { variables }) });
  return `${settings.base}/graphiql?${search.toString()}`;
}
