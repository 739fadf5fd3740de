import { createContext, type ReactNode, type SyntheticEvent, useContext, useEffect, useRef, useState } from 'react';
import { problemOf, type Problem } from '../apollo/problem.ts';

interface FormProps {
  /** What the button says. */
  submit: string;
  /** Does it. What it throws is shown: at the fields that it names, else below the form. */
  action: (values: FormData, form: HTMLFormElement) => Promise<void>;
  className?: string;
  children: ReactNode;
}

const NO_ERRORS: ReadonlyMap<string, string> = new Map();
const FieldErrors = createContext(NO_ERRORS);

/** What the last attempt said of the field of this name. */
export function useFieldError(name: string): string | undefined {
  return useContext(FieldErrors).get(name);
}

/** A form whose values are sent by an action, and which shows what that refuses. */
export function Form({ submit, action, className = '', children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setIsBusy] = useState(false);

  useEffect(() => {
    if (problem) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [problem]);

  const onSubmit = (event: SyntheticEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setProblem(undefined);
    action(new FormData(event.currentTarget), event.currentTarget)
      .catch((error: unknown) => setProblem(problemOf(error)))
      .finally(() => setIsBusy(false));
  };

  return (
    <form ref={form} className={`form ${className}`} noValidate onSubmit={onSubmit}>
      <FieldErrors value={problem?.fields ?? NO_ERRORS}>{children}</FieldErrors>
      {problem && (
        <p className="form-problem" role="alert">
          {problem.fields.size > 0 ? 'Please look at what is marked.' : problem.message}
        </p>
      )}
      <button type="submit" className="primary" aria-disabled={isBusy}>
        {submit}
      </button>
    </form>
  );
}

/** The text of a field, as it stands in the form. */
export function textIn(values: FormData, name: string): string {
  const value = values.get(name);
  return typeof value === 'string' ? value : '';
}
