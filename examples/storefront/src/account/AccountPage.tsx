import { useQuery } from '@apollo/client/react';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { Failure } from '../ui/Failure.tsx';
import { Loading } from '../ui/Loading.tsx';
import { Items } from './Items.tsx';
import { Profile } from './Profile.tsx';
import { Sessions } from './Sessions.tsx';
import './account.css';

const AccountDocument = graphql(`
  query Account($itemsAfter: String) {
    me {
      id
      ...Profile
      ...Items
      ...Sessions
    }
  }
`);

/** Profile, items and open sessions of the viewer. */
export function AccountPage() {
  const { data, error, refetch, fetchMore } = useQuery(AccountDocument, {
    fetchPolicy: 'cache-and-network',
  });
  return (
    <>
      <PageHeading title="Your account" />
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!data?.me && !error && <Loading what="your account" />}
      {data?.me && (
        <div className="account">
          <Profile user={data.me} />
          <Items user={data.me} onMore={(itemsAfter) => fetchMore({ variables: { itemsAfter } })} />
          <Sessions user={data.me} />
        </div>
      )}
    </>
  );
}
