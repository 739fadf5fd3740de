import type { RouteObject } from 'react-router';
import { CataloguePage } from '../catalogue/CataloguePage.tsx';
import { ProductPage } from '../catalogue/ProductPage.tsx';
import { RequireSession } from '../session/RequireSession.tsx';
import { SignInPage } from '../session/SignInPage.tsx';
import { Loading } from '../ui/Loading.tsx';
import { CrashPage } from './CrashPage.tsx';
import { Layout } from './Layout.tsx';
import { NotFoundPage } from './NotFoundPage.tsx';

/** Routes. Pages that a first visit does not show are loaded on demand. */
export const routes: RouteObject[] = [
  {
    Component: Layout,
    ErrorBoundary: CrashPage,
    HydrateFallback: () => <Loading what="the shop" />,
    children: [
      { path: '/', Component: CataloguePage },
      { path: '/products/:pk', Component: ProductPage },
      { path: '/sign-in', Component: SignInPage },
      {
        path: '/confirm',
        lazy: async () => ({ Component: (await import('../session/ConfirmPage.tsx')).ConfirmPage }),
      },
      {
        path: '/reset',
        lazy: async () => ({ Component: (await import('../session/ResetPage.tsx')).ResetPage }),
      },
      {
        Component: RequireSession,
        children: [
          {
            path: '/account',
            lazy: async () => ({
              Component: (await import('../account/AccountPage.tsx')).AccountPage,
            }),
          },
          {
            path: '/products/new',
            lazy: async () => ({
              Component: (await import('../catalogue/NewProductPage.tsx')).NewProductPage,
            }),
          },
          {
            path: '/blog',
            lazy: async () => ({ Component: (await import('../blog/BlogPage.tsx')).BlogPage }),
          },
          {
            path: '/blog/new',
            lazy: async () => ({
              Component: (await import('../blog/NewEntryPage.tsx')).NewEntryPage,
            }),
          },
          {
            path: '/blog/:id',
            lazy: async () => ({ Component: (await import('../blog/EntryPage.tsx')).EntryPage }),
          },
          {
            path: '/blog/:id/edit',
            lazy: async () => ({
              Component: (await import('../blog/EditEntryPage.tsx')).EditEntryPage,
            }),
          },
        ],
      },
      { path: '*', Component: NotFoundPage },
    ],
  },
];
