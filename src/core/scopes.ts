/** All permissions (docs/decisions.md, "Logins and credentials"). `writes`: allows changes. */
const DEFINITIONS = {
  'products:write': { writes: true, allows: 'Create, change and delete products.' },
  'users:read': {
    writes: false,
    allows:
      'Read the email addresses, scopes and items of all users, and the usage of the REST API.',
  },
  'blog:write': { writes: true, allows: 'Create blog entries, and change and delete own entries.' },
  'audit:read': { writes: false, allows: 'Read the audit trail.' },
} as const;

/** A permission that a user holds and a token or session may narrow. */
export type Scope = keyof typeof DEFINITIONS;

/** The names of all permissions. */
export const SCOPES = Object.keys(DEFINITIONS) as [Scope, ...Scope[]];

/** Returns the description of a permission. */
export function scopeDescription(scope: Scope): string {
  return DEFINITIONS[scope].allows;
}

/** Returns whether any of the permissions allows changes. */
export function includesWriteScope(scopes: Iterable<Scope>): boolean {
  return [...scopes].some((scope) => DEFINITIONS[scope].writes);
}

/** Returns whether the text is the name of a permission. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}
