import { Field, ProseField } from '../ui/Field.tsx';

/** The fields of the forms that write an entry and change it. */
export function EntryFields({ title = '', body = '' }: { title?: string; body?: string }) {
  return (
    <>
      <Field name="title" label="Title" defaultValue={title} autoComplete="off" />
      <ProseField name="body" label="Text" defaultValue={body} rows={12} />
    </>
  );
}
