/** The permissions there are (docs/decisions.md, "Who may write?"). */
export const SCOPES = ['products:write', 'users:read', 'blog:write', 'audit:read'] as const;

/** A permission that a user holds and a token or session may narrow. */
export type Scope = (typeof SCOPES)[number];

/** Whether the text names a permission. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}
