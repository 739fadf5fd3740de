import type { PageSettings } from '../src/pages/settings.ts';

/** What the server has said to this page. */
export const settings = JSON.parse(document.getElementById('settings')?.textContent ?? '{}') as PageSettings;

/** The address at which everything stands, as the reader reaches it. */
export const home = location.origin + settings.base;
