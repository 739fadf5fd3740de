import { useMutation } from '@apollo/client/react';
import { problemOf } from '../apollo/problem.ts';
import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { Instant } from '../ui/Instant.tsx';
import { showNotice } from '../ui/notices.ts';
import { deviceOf } from './device.ts';

const SessionRowFields = graphql(`
  fragment SessionRow on Session {
    __typename
    id
    current
    userAgent
    createdAt
    lastSeenAt
  }
`);

const EndSessionDocument = graphql(`
  mutation EndSession($id: ID!) {
    endSession(id: $id) {
      ended
    }
  }
`);

/** An open session of the user, with a button to end it unless it is the current one. */
export function SessionRow({ session }: { session: FragmentType<typeof SessionRowFields> }) {
  const { __typename, id, current, userAgent, createdAt, lastSeenAt } = readFragment(
    SessionRowFields,
    session,
  );
  const device = deviceOf(userAgent ?? '');
  const [endSession, { loading }] = useMutation(EndSessionDocument, {
    variables: { id },
    update: (cache) => {
      cache.evict({ id: cache.identify({ __typename, id }) ?? '' });
    },
    onCompleted: () => showNotice(`The session on ${device} has ended.`, '/account'),
    onError: (error) => showNotice(problemOf(error).message, '/account'),
  });

  return (
    <li>
      <p>
        <strong>{device}</strong> {current && <span className="badge">this one</span>}
        <br />
        <span className="dim" id={`since-${id}`}>
          since <Instant at={createdAt} exact />, last used <Instant at={lastSeenAt} exact />
        </span>
      </p>
      {!current && (
        <button
          type="button"
          className="quiet"
          aria-disabled={loading}
          aria-label={`End the session on ${device}`}
          aria-describedby={`since-${id}`}
          onClick={() => void endSession()}
        >
          End
        </button>
      )}
    </li>
  );
}
