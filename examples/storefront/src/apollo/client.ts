import { ApolloClient, ApolloLink, HttpLink } from '@apollo/client';
import { createCache } from './cache.ts';
import { bearerLink, busyLink, renewLink, retryLink } from './links.ts';

/** The client of the API at this address. */
export function createClient(address: string): ApolloClient {
  return new ApolloClient({
    cache: createCache(),
    link: ApolloLink.from([retryLink, busyLink, renewLink, bearerLink, new HttpLink({ uri: address })]),
    // Nothing about the client's library in each request.
    enhancedClientAwareness: { transport: false },
  });
}
