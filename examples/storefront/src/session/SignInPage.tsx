import { useApolloClient } from '@apollo/client/react';
import { Navigate, useLocation } from 'react-router';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { Field } from '../ui/Field.tsx';
import { Form, textIn } from '../ui/Form.tsx';
import { dismiss, notice } from '../ui/notices.ts';
import { useStore } from '../ui/store.ts';
import { storeCredentials, signedIn } from './credentials.ts';
import { UsernameField } from './UsernameField.tsx';
import { ViewerDocument } from './viewer.ts';

const LoginDocument = graphql(`
  mutation Login($username: String!, $password: String!) {
    login(username: $username, password: $password) {
      accessToken
      refreshToken
      user {
        id
        ...Viewer
      }
    }
  }
`);

/** Signs in, and returns to the page that required it. */
export function SignInPage() {
  const client = useApolloClient();
  const isSignedIn = useStore(signedIn);
  const { state } = useLocation();

  const signIn = async (values: FormData) => {
    const variables = {
      username: textIn(values, 'username'),
      password: textIn(values, 'password'),
    };
    // Credentials are not stored in the cache.
    const { data } = await client.mutate({
      mutation: LoginDocument,
      variables,
      context: { anonymous: true },
      fetchPolicy: 'no-cache',
    });
    if (!data) return;
    client.writeQuery({ query: ViewerDocument, data: { me: data.login.user } });
    dismiss(notice.get());
    storeCredentials(data.login);
  };

  if (isSignedIn) return <Navigate to={originIn(state)} replace />;
  return (
    <div className="narrow">
      <PageHeading title="Sign in" />
      <Form submit="Sign in" action={signIn}>
        <UsernameField />
        <Field name="password" label="Password" type="password" autoComplete="current-password" />
      </Form>
    </div>
  );
}

function originIn(state: unknown): string {
  const from =
    typeof state === 'object' && state !== null && 'from' in state ? state.from : undefined;
  return typeof from === 'string' ? from : '/';
}
