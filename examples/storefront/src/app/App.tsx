import { ApolloProvider } from '@apollo/client/react';
import { createBrowserRouter } from 'react-router';
import { RouterProvider } from 'react-router/dom';
import { apiAddress } from '../apollo/address.ts';
import { createClient } from '../apollo/client.ts';
import { routes } from './routes.tsx';

const client = createClient(apiAddress());
const router = createBrowserRouter(routes);

/** The app with its providers. */
export function App() {
  return (
    <ApolloProvider client={client}>
      <RouterProvider router={router} />
    </ApolloProvider>
  );
}
