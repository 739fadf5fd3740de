import type { PageSettings } from '../../../packages/pages/settings.ts';

const { base } = JSON.parse(
  document.getElementById('settings')?.textContent ?? '{}',
) as PageSettings;

/** Path of the storefront. */
export const HOME = `${base}/shop`;

/** Path of the GraphQL API. */
export const API = `${base}/graphql`;
