/** All permissions (docs/decisions.md, "Logins and credentials"), and whether they allow changes. */
const ALLOWS_CHANGES = {
  // Create, change and delete products.
  'products:write': true,
  // Read the email addresses, scopes and items of all users, and the usage of the REST API.
  'users:read': false,
  // Create blog entries, and change and delete own entries.
  'blog:write': true,
  // Read the audit trail.
  'audit:read': false,
} as const;

/** A permission that a user holds and a token or session may narrow. */
export type Scope = keyof typeof ALLOWS_CHANGES;

/** The names of all permissions. */
export const SCOPES = Object.keys(ALLOWS_CHANGES) as [Scope, ...Scope[]];

/** Returns whether any of the permissions allows changes. */
export function includesWriteScope(scopes: Iterable<Scope>): boolean {
  return [...scopes].some((scope) => ALLOWS_CHANGES[scope]);
}

/** Returns whether the text is the name of a permission. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}
