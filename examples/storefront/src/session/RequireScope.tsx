import { useQuery } from '@apollo/client/react';
import type { ReactNode } from 'react';
import { PageFailure } from '../app/PageFailure.tsx';
import { PageHeading } from '../app/PageHeading.tsx';
import { Loading } from '../ui/Loading.tsx';
import { useViewer, ViewerDocument } from './viewer.ts';

/** Shows what is in it to those who hold the scope. The shop itself refuses the others; this spares them the form. */
export function RequireScope({ scope, children }: { scope: string; children: ReactNode }) {
  const viewer = useViewer();
  const { error, refetch } = useQuery(ViewerDocument);
  if (!viewer)
    return error ? <PageFailure title="Your account" error={error} onRetry={() => void refetch()} /> : <Loading what="your account" />;
  if (viewer.scopes.includes(scope)) return children;
  return (
    <>
      <PageHeading title="This is not open to you" />
      <p>
        Your account does not hold the scope <code>{scope}</code>. Whoever runs the shop can give it to you.
      </p>
    </>
  );
}
