import { Migration20261128000000_initial } from './20261128000000_initial.ts';

/** The migrations, oldest first. Add new ones at the end; never change one that was released. */
export const migrations = [
  { name: '20261128000000_initial', class: Migration20261128000000_initial },
];
