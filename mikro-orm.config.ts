import { ReflectMetadataProvider } from '@mikro-orm/decorators/legacy';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig } from '@mikro-orm/postgresql';
import { migrations } from './src/database/migrations/migrations.ts';
import { entities } from './src/features.ts';

/** Configuration of MikroORM. The connection is configured in src/database/database.ts. */
export default defineConfig({
  entities,
  metadataProvider: ReflectMetadataProvider,
  extensions: [Migrator],
  migrations: { migrationsList: migrations, snapshot: false, tableName: 'migration', safe: true },
  discovery: { warnWhenNoEntities: false },
  forceUtcTimezone: true,
  // The operator creates the database; the ORM must not.
  ensureDatabase: false,
});
