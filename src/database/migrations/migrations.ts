import { Migration20261127000000_initial } from './20261127000000_initial.ts';

/** The migrations, oldest first. Add new ones at the end; never change one that was released. */
export const migrations = [
  { name: '20261127000000_initial', class: Migration20261127000000_initial },
];
