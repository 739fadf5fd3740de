import { ApolloProvider } from '@apollo/client/react';
import { createBrowserRouter } from 'react-router';
import { RouterProvider } from 'react-router/dom';
import { createClient } from '../apollo/client.ts';
import { watchProducts } from '../catalogue/product-changes.ts';
import { type MailPage, takeMailToken } from '../session/mail-token.ts';
import { API, HOME } from '../settings.ts';
import { routes } from './routes.tsx';

const client = createClient(API);
// Before the router reads the address.
const mailPage = takeMailToken();
const router = createBrowserRouter(routes, { basename: HOME });

watchProducts(client);

const openMailPage = (page?: MailPage) => {
  if (page) void router.navigate(`/${page}`, { replace: true });
};
openMailPage(mailPage);
// A link in a mail, opened in a tab that already shows the storefront.
window.addEventListener('hashchange', () => openMailPage(takeMailToken()));

/** The app with its providers. */
export function App() {
  return (
    <ApolloProvider client={client}>
      <RouterProvider router={router} />
    </ApolloProvider>
  );
}
