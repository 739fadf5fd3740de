import { Migration20261128000000_functions } from './20261128000000_functions.ts';
import { Migration20261128000001_tables } from './20261128000001_tables.ts';
import { Migration20261128000002_triggers } from './20261128000002_triggers.ts';

/**
 * The migrations, oldest first. Add new ones at the end; never change one that was released. The
 * tables are written by the ORM (`getCreateSchemaSQL`) from the entities.
 */
export const migrations = [
  { name: '20261128000000_functions', class: Migration20261128000000_functions },
  { name: '20261128000001_tables', class: Migration20261128000001_tables },
  { name: '20261128000002_triggers', class: Migration20261128000002_triggers },
];
