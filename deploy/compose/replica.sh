#!/usr/bin/env bash
# Follows the server at PGHOST by streaming replication, from a copy that the first start makes in PGDATA. Arguments go to PostgreSQL.
set -euo pipefail

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # A copy that was broken off is begun anew.
  find "$PGDATA" -mindepth 1 -delete
  pg_basebackup --username=replica --no-password --pgdata="$PGDATA" --write-recovery-conf --wal-method=stream --checkpoint=fast
  chmod 0700 "$PGDATA"
fi
exec postgres -D "$PGDATA" "$@"
