#!/usr/bin/env bash
# Runs a streaming replica of the server at PGHOST. The first start copies the server to PGDATA.
# PGPASSWORD_FILE has the password. Arguments are passed to PostgreSQL.
set -euo pipefail
PGPASSWORD=$(<"$PGPASSWORD_FILE")
export PGPASSWORD

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # Restarts an interrupted copy.
  find "$PGDATA" -mindepth 1 -delete
  pg_basebackup --username=replica --no-password --pgdata="$PGDATA" --write-recovery-conf --wal-method=stream --checkpoint=fast
  chmod 0700 "$PGDATA"
fi
exec postgres -D "$PGDATA" "$@"
