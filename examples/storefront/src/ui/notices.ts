import { createStore } from './store.ts';

/** A message above the page. */
export interface Notice {
  text: string;
  /** The path of its page; without one it stays until it is dismissed. */
  page?: string;
}

/** The current notice. */
export const notice = createStore<Notice | undefined>(undefined);

/** Replaces the notice. With a page, it is shown only there, until the user leaves the page. */
export function showNotice(text: string, page?: string): void {
  notice.set({ text, ...(page !== undefined && { page }) });
}

/** Removes the notice, if it is the current one. */
export function dismiss(shown: Notice | undefined): void {
  if (notice.get() === shown) notice.set(undefined);
}
