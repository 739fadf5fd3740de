import { createStore } from './store.ts';

/** A line for the user, above the page. */
export interface Notice {
  text: string;
  /** The path of the page that it belongs to; without one it stays until it is dismissed. */
  page?: string;
}

/** The notice that is there now. */
export const notice = createStore<Notice | undefined>(undefined);

/** Shows a notice in place of the one before; with a page, there only and until it is left. */
export function tell(text: string, page?: string): void {
  notice.set({ text, ...(page !== undefined && { page }) });
}

/** Takes the notice away, if it is still this one. */
export function dismiss(shown: Notice | undefined): void {
  if (notice.get() === shown) notice.set(undefined);
}
