import { useMutation } from '@apollo/client/react';
import { Link, useNavigate } from 'react-router';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { RequireScope } from '../session/RequireScope.tsx';
import { Form, textIn } from '../ui/Form.tsx';
import { showNotice } from '../ui/notices.ts';
import { EntryFields } from './EntryFields.tsx';
import './blog.css';

const CreateBlogEntryDocument = graphql(`
  mutation CreateBlogEntry($input: BlogEntryInput!) {
    createBlogEntry(input: $input) {
      id
      title
    }
  }
`);

/** Creates an entry as a draft. Its own page publishes it. */
export function NewEntryPage() {
  return (
    <RequireScope scope="blog:write">
      <NewEntry />
    </RequireScope>
  );
}

function NewEntry() {
  const navigate = useNavigate();
  const [createEntry] = useMutation(CreateBlogEntryDocument, {
    update: (cache) => void cache.evict({ id: 'ROOT_QUERY', fieldName: 'blog' }),
  });

  const create = async (values: FormData) => {
    const { data } = await createEntry({
      variables: { input: { title: textIn(values, 'title'), body: textIn(values, 'body') } },
    });
    if (!data) return;
    const page = `/blog/${data.createBlogEntry.id}`;
    await navigate(page);
    showNotice('Your draft is saved. Only you can see it until you publish it.', page);
  };

  return (
    <div className="reading">
      <Link className="back-link" to="/blog">
        ← Blog
      </Link>
      <PageHeading title="New entry" />
      <Form submit="Save as draft" action={create}>
        <EntryFields />
      </Form>
    </div>
  );
}
