import { useMutation } from '@apollo/client/react';
import { Link, useNavigate, useParams } from 'react-router';
import { NotFoundPage } from '../app/NotFoundPage.tsx';
import { PageFailure } from '../app/PageFailure.tsx';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { Form, textIn } from '../ui/Form.tsx';
import { Loading } from '../ui/Loading.tsx';
import { showNotice } from '../ui/notices.ts';
import { EntryFields } from './EntryFields.tsx';
import { useEntry } from './useEntry.ts';
import './blog.css';

const UpdateBlogEntryDocument = graphql(`
  mutation UpdateBlogEntry($id: ID!, $input: BlogEntryPatch!) {
    updateBlogEntry(id: $id, input: $input) {
      id
      title
      body
      updatedAt
    }
  }
`);

/** Changes an entry of the viewer. */
export function EditEntryPage() {
  const { id = '' } = useParams();
  const navigate = useNavigate();
  const { entry, isOwn, error, refetch } = useEntry(id);
  const [updateEntry] = useMutation(UpdateBlogEntryDocument);
  const page = `/blog/${id}`;

  const update = async (values: FormData) => {
    await updateEntry({
      variables: { id, input: { title: textIn(values, 'title'), body: textIn(values, 'body') } },
    });
    await navigate(page);
    showNotice('Your changes are saved.', page);
  };

  if (error)
    return <PageFailure title="Edit the entry" error={error} onRetry={() => void refetch()} />;
  if (entry === undefined) return <Loading what="the entry" />;
  if (!entry || !isOwn) return <NotFoundPage what="entry of yours" />;
  return (
    <div className="reading">
      <Link className="back-link" to={page}>
        ← {entry.title}
      </Link>
      <PageHeading title="Edit the entry" />
      <Form submit="Save changes" action={update}>
        <EntryFields title={entry.title} body={entry.body} />
      </Form>
    </div>
  );
}
