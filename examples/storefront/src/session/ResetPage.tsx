import { useMutation } from '@apollo/client/react';
import { graphql } from '../gql/index.ts';
import { Field } from '../ui/Field.tsx';
import { textIn } from '../ui/Form.tsx';
import { MailTokenPage } from './MailTokenPage.tsx';

const ResetPasswordDocument = graphql(`
  mutation ResetPassword($token: String!, $new: String!) {
    resetPassword(token: $token, new: $new) {
      id
      username
    }
  }
`);

/** Sets a new password. */
export function ResetPage() {
  const [resetPassword] = useMutation(ResetPasswordDocument, {
    context: { anonymous: true },
    fetchPolicy: 'no-cache',
  });

  const reset = async (token: string, values: FormData) => {
    const { data } = await resetPassword({ variables: { token, new: textIn(values, 'new') } });
    return data
      ? `The password of ${data.resetPassword.username} is changed. Sign in with the new one.`
      : undefined;
  };

  return (
    <MailTokenPage
      page="reset"
      title="Set a new password"
      submit="Set the password"
      action={reset}
      remedy="Request a new password again to get a new link."
    >
      <Field
        name="new"
        label="New password"
        type="password"
        autoComplete="new-password"
        help="At least 8 characters. All of your sessions and API keys will end."
      />
    </MailTokenPage>
  );
}
