import { Field } from '../ui/Field.tsx';

/** Usernames are compared exactly, so that keyboards must not change them. */
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
