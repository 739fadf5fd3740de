import { ApolloClient, ApolloLink, HttpLink } from '@apollo/client';
import { createCache } from './cache.ts';
import { bearerLink, busyLink, renewLink, retryLink } from './links.ts';

/** Creates a client of the API at this address. */
export function createClient(address: string): ApolloClient {
  return new ApolloClient({
    cache: createCache(),
    link: ApolloLink.from([
      retryLink,
      busyLink,
      renewLink,
      bearerLink,
      new HttpLink({ uri: address }),
    ]),
    // Omits the name and version of the library from requests.
    enhancedClientAwareness: { transport: false },
  });
}
