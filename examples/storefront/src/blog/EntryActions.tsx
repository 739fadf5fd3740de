import { useMutation } from '@apollo/client/react';
import { Link, useNavigate } from 'react-router';
import { problemOf } from '../apollo/problem.ts';
import { graphql } from '../gql/index.ts';
import { ConfirmButton } from '../ui/ConfirmButton.tsx';
import { showNotice } from '../ui/notices.ts';

const PublishDocument = graphql(`
  mutation PublishBlogEntry($id: ID!, $published: Boolean!) {
    updateBlogEntry(id: $id, input: { published: $published }) {
      id
      published
      updatedAt
    }
  }
`);

const DeleteBlogEntryDocument = graphql(`
  mutation DeleteBlogEntry($id: ID!) {
    deleteBlogEntry(id: $id) {
      __typename
      id
    }
  }
`);

interface EntryActionsProps {
  id: string;
  title: string;
  published: boolean;
}

/** Actions of the creator of an entry. */
export function EntryActions({ id, title, published }: EntryActionsProps) {
  const navigate = useNavigate();
  const page = `/blog/${id}`;
  const onError = (error: unknown) => showNotice(problemOf(error).message, page);
  const [publish, { loading }] = useMutation(PublishDocument, {
    variables: { id, published: !published },
    onCompleted: ({ updateBlogEntry }) =>
      showNotice(
        updateBlogEntry.published
          ? 'It is published.'
          : 'It is a draft again. Only you can see it.',
        page,
      ),
    onError,
  });
  const [deleteEntry] = useMutation(DeleteBlogEntryDocument, { variables: { id }, onError });

  const remove = async () => {
    const { data } = await deleteEntry();
    if (!data) return;
    await navigate('/blog', { replace: true });
    showNotice(`“${title}” is deleted.`, '/blog');
  };

  return (
    <div className="actions">
      <button
        type="button"
        className={published ? '' : 'primary'}
        aria-disabled={loading}
        onClick={() => void publish()}
      >
        {published ? 'Unpublish' : 'Publish'}
      </button>
      <Link className="button" to={`${page}/edit`}>
        Edit
      </Link>
      <ConfirmButton
        label="Delete"
        question={`Delete “${title}” permanently?`}
        onConfirm={() => void remove()}
      />
    </div>
  );
}
