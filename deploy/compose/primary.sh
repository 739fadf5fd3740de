#!/usr/bin/env bash
# Permits replication from this server. The PostgreSQL image runs it once, for a new database.
set -euo pipefail

psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
\getenv password POSTGRES_PASSWORD
create role replica login replication password :'password';
SQL
echo 'host replication replica samenet scram-sha-256' >> "$PGDATA/pg_hba.conf"
