import { type FragmentType, graphql, readFragment } from '../gql/index.ts';

const ProfileFields = graphql(`
  fragment Profile on User {
    id
    username
    fullName
    email
    scopes
  }
`);

/** The profile of a user. */
export function Profile({ user }: { user: FragmentType<typeof ProfileFields> }) {
  const { username, fullName, email, scopes } = readFragment(ProfileFields, user);
  return (
    <section className="panel" aria-labelledby="profile">
      <h2 id="profile">Profile</h2>
      <dl>
        <dt>Name</dt>
        <dd>{fullName ?? '–'}</dd>
        <dt>Username</dt>
        <dd>{username}</dd>
        <dt>Email</dt>
        <dd>{email ?? '–'}</dd>
        <dt>Scopes</dt>
        <dd>
          {scopes.length === 0 && 'none'}
          {scopes.map((scope) => (
            <code key={scope}>{scope}</code>
          ))}
        </dd>
      </dl>
    </section>
  );
}
