import { Field } from '../ui/Field.tsx';

/** A username, which keyboards must not change. */
export function UsernameField() {
  return (
    <Field
      name="username"
      label="Username"
      autoComplete="username"
      autoCapitalize="none"
      spellCheck={false}
    />
  );
}
