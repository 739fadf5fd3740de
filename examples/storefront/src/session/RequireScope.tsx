import { useQuery } from '@apollo/client/react';
import type { ReactNode } from 'react';
import { PageFailure } from '../app/PageFailure.tsx';
import { PageHeading } from '../app/PageHeading.tsx';
import { Loading } from '../ui/Loading.tsx';
import { useViewer, ViewerDocument } from './viewer.ts';

/** Shows its children to users with the scope. The shop checks the scope; this hides the form. */
export function RequireScope({ scope, children }: { scope: string; children: ReactNode }) {
  const viewer = useViewer();
  const { error, refetch } = useQuery(ViewerDocument);
  if (!viewer)
    return error ? (
      <PageFailure title="Your account" error={error} onRetry={() => void refetch()} />
    ) : (
      <Loading what="your account" />
    );
  if (viewer.scopes.includes(scope)) return children;
  return (
    <>
      <PageHeading title="You do not have access" />
      <p>
        Your account lacks the scope <code>{scope}</code>. An administrator can grant it to you.
      </p>
    </>
  );
}
