import { type ReactNode, useState } from 'react';
import { useLocation } from 'react-router';
import { PageHeading } from '../app/PageHeading.tsx';
import { problemOf } from '../apollo/problem.ts';
import { Form } from '../ui/Form.tsx';
import { forgetMailToken, type MailPage, mailToken } from './mail-token.ts';
import { useLeave } from './useLeave.ts';

interface MailTokenPageProps {
  page: MailPage;
  title: string;
  submit: string;
  /** Uses the token. Returns the notice for the page where the user then signs in. */
  action: (token: string, values: FormData) => Promise<string | undefined>;
  /** What to do if the token is rejected. */
  remedy: string;
  children: ReactNode;
}

/** A page that a link in a mail opens with a token, which its form uses once. */
export function MailTokenPage({
  page,
  title,
  submit,
  action,
  remedy,
  children,
}: MailTokenPageProps) {
  const leave = useLeave();
  // Another link in the same tab changes the location, and the token.
  useLocation();
  const token = mailToken(page);
  const [rejected, setRejected] = useState<string>();
  const isRejected = token !== undefined && token === rejected;

  const send = async (values: FormData) => {
    if (token === undefined) return;
    const notice = await action(token, values).catch((error: unknown) => {
      // The form has no field for the token.
      if (!problemOf(error).fields.has('token')) throw error;
      setRejected(token);
    });
    if (notice === undefined) return;
    await leave(notice, '/sign-in');
    forgetMailToken();
  };

  return (
    <div className="narrow">
      <PageHeading title={title} />
      {token === undefined && <p>Open the link in the mail to continue.</p>}
      {isRejected && (
        <div className="failure" role="alert">
          <p>This link is not valid, was used before, or has expired. {remedy}</p>
        </div>
      )}
      {token !== undefined && !isRejected && (
        <Form submit={submit} action={send}>
          {children}
        </Form>
      )}
    </div>
  );
}
