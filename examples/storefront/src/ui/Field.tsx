import { type ComponentProps, type ReactNode, useId } from 'react';
import { useFieldError } from './Form.tsx';

interface Described {
  name: string;
  label: string;
  help?: ReactNode;
}

/** A one-line field with label, help and error. */
export function Field({
  name,
  label,
  help,
  ...input
}: Described & Omit<ComponentProps<'input'>, 'name'>) {
  const field = useField(name, help);
  return (
    <div className="field">
      <label htmlFor={field.props.id}>{label}</label>
      <input {...input} {...field.props} />
      {field.notes}
    </div>
  );
}

/** A multi-line field with label, help and error. */
export function ProseField({
  name,
  label,
  help,
  ...area
}: Described & Omit<ComponentProps<'textarea'>, 'name'>) {
  const field = useField(name, help);
  return (
    <div className="field">
      <label htmlFor={field.props.id}>{label}</label>
      <textarea {...area} {...field.props} />
      {field.notes}
    </div>
  );
}

function useField(name: string, help: ReactNode) {
  const id = useId();
  const error = useFieldError(name);
  const notes = [help !== undefined && `${id}-help`, error !== undefined && `${id}-error`].filter(
    (note) => note !== false,
  );
  return {
    props: {
      id,
      name,
      'aria-invalid': error !== undefined,
      ...(notes.length > 0 && { 'aria-describedby': notes.join(' ') }),
    },
    notes: (
      <>
        {help !== undefined && (
          <p className="field-help" id={`${id}-help`}>
            {help}
          </p>
        )}
        {error !== undefined && (
          <p className="field-error" id={`${id}-error`}>
            {error}
          </p>
        )}
      </>
    ),
  };
}
