import {
  createContext,
  type ReactNode,
  type SyntheticEvent,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react';
import { problemOf, type Problem } from '../apollo/problem.ts';

interface FormProps {
  /** Text of the button. */
  submit: string;
  /** Submits the values. Its errors are shown at their fields, or below the form. */
  action: (values: FormData, form: HTMLFormElement) => Promise<void>;
  className?: string;
  children: ReactNode;
}

const NO_ERRORS: ReadonlyMap<string, string> = new Map();
const FieldErrors = createContext(NO_ERRORS);

/** The error of this field in the last attempt. */
export function useFieldError(name: string): string | undefined {
  return useContext(FieldErrors).get(name);
}

/** A form that passes its values to an action, and shows the errors of the action. */
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
          {problem.fields.size > 0 ? 'Check the marked fields.' : problem.message}
        </p>
      )}
      <button type="submit" className="primary" aria-disabled={isBusy}>
        {submit}
      </button>
    </form>
  );
}

/** The text of a field. */
export function textIn(values: FormData, name: string): string {
  const value = values.get(name);
  return typeof value === 'string' ? value : '';
}
