import { useMutation } from '@apollo/client/react';
import { Link, useNavigate } from 'react-router';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { RequireScope } from '../session/RequireScope.tsx';
import { Form, textIn } from '../ui/Form.tsx';
import { tell } from '../ui/notices.ts';
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

/** Writes an entry. It begins as a draft, and is read over on its own page before it is published. */
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
    const { data } = await createEntry({ variables: { input: { title: textIn(values, 'title'), body: textIn(values, 'body') } } });
    if (!data) return;
    const page = `/blog/${data.createBlogEntry.id}`;
    await navigate(page);
    tell('Your draft is kept. Nobody else sees it until you publish it.', page);
  };

  return (
    <div className="reading">
      <Link className="back-link" to="/blog">
        ← Blog
      </Link>
      <PageHeading title="New entry" />
      <Form submit="Keep as a draft" action={create}>
        <EntryFields />
      </Form>
    </div>
  );
}
