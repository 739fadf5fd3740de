import type { PageSettings } from '../settings.ts';

/** Settings that the server writes into the page. */
export const settings = JSON.parse(
  document.getElementById('settings')?.textContent ?? '{}',
) as PageSettings;

/** The base address, as the reader reaches it. */
export const home = location.origin + settings.base;
