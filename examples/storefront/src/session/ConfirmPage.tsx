import { useMutation } from '@apollo/client/react';
import { graphql } from '../gql/index.ts';
import { Field } from '../ui/Field.tsx';
import { textIn } from '../ui/Form.tsx';
import { MailTokenPage } from './MailTokenPage.tsx';
import { UsernameField } from './UsernameField.tsx';

const ConfirmRegistrationDocument = graphql(`
  mutation ConfirmRegistration($input: ConfirmationInput!) {
    confirmRegistration(input: $input) {
      id
      username
    }
  }
`);

/** Confirms an email address, and creates its account. */
export function ConfirmPage() {
  const [confirmRegistration] = useMutation(ConfirmRegistrationDocument, {
    context: { anonymous: true },
    fetchPolicy: 'no-cache',
  });

  const confirm = async (token: string, values: FormData) => {
    const fullName = textIn(values, 'fullName').trim();
    const input = {
      token,
      username: textIn(values, 'username'),
      password: textIn(values, 'password'),
      fullName: fullName === '' ? null : fullName,
    };
    const { data } = await confirmRegistration({ variables: { input } });
    return data
      ? `Your address is confirmed. Sign in as ${data.confirmRegistration.username}.`
      : undefined;
  };

  return (
    <MailTokenPage
      page="confirm"
      title="Confirm your address"
      submit="Create the account"
      action={confirm}
      remedy="Register again to get a new link."
    >
      <UsernameField />
      <Field name="fullName" label="Name" autoComplete="name" help="Optional." />
      <Field
        name="password"
        label="Password"
        type="password"
        autoComplete="new-password"
        help="At least 8 characters."
      />
    </MailTokenPage>
  );
}
