/** The permissions there are (docs/decisions.md, "Who may write?"), and whether they allow to change anything. */
const DECLARED = {
  'products:write': { writes: true, allows: 'Create, change and delete products.' },
  'users:read': { writes: false, allows: 'Read the email addresses, scopes and items of all users.' },
  'blog:write': { writes: true, allows: 'Write blog entries, and change and delete own ones.' },
  'audit:read': { writes: false, allows: 'Read the audit trail.' },
} as const;

/** A permission that a user holds and a token or session may narrow. */
export type Scope = keyof typeof DECLARED;

/** The names of all permissions. */
export const SCOPES = Object.keys(DECLARED) as [Scope, ...Scope[]];

/** What a permission allows, in a sentence. */
export function allowedBy(scope: Scope): string {
  return DECLARED[scope].allows;
}

/** Whether one of the permissions allows to change anything. */
export function includesWriting(scopes: Iterable<Scope>): boolean {
  return [...scopes].some((scope) => DECLARED[scope].writes);
}

/** Whether the text names a permission. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}
