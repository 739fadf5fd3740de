import { Field, ProseField } from '../ui/Field.tsx';

/** Fields of the forms for a new and an existing entry. */
export function EntryFields({ title = '', body = '' }: { title?: string; body?: string }) {
  return (
    <>
      <Field name="title" label="Title" defaultValue={title} autoComplete="off" />
      <ProseField name="body" label="Text" defaultValue={body} rows={12} />
    </>
  );
}
