import pg from 'pg';

// Ends with 0 if a PostgreSQL server answers at the URL and lets us make databases.
const client = new pg.Client({ connectionString: process.argv[2], connectionTimeoutMillis: 3_000 });
await client.connect();
const { rows } = await client.query('select rolcreatedb or rolsuper as may from pg_roles where rolname = current_user');
await client.end();
process.exit(rows[0].may ? 0 : 1);
