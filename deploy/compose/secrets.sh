#!/usr/bin/env bash
# Writes the password of the database, and the settings with secrets, to /secrets or another
# directory: the given POSTGRES_PASSWORD and SIGNING_SECRET, or the stored ones, or new ones.
set -euo pipefail
cd "${1:-/secrets}"
umask 077

new() { od -A n -t x1 -v -N 32 /dev/urandom | tr -d ' \n'; }
# Renamed when complete: an interrupted start leaves no partial secret.
store() { cat >"$1.new" && chown "$2" "$1.new" && mv "$1.new" "$1"; }
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }
in_url() { printf '%s' "$1" | od -A n -t x1 -v | tr -d '\n' | tr ' ' '%'; }

password=${POSTGRES_PASSWORD:-$(cat database-password 2>/dev/null || new)}
signing=${SIGNING_SECRET:-$(cat signing-secret 2>/dev/null || new)}
url() { quoted "postgresql://shopfront:$(in_url "$password")@$1:5432/shopfront"; }

printf '%s' "$password" | store database-password postgres
printf '%s' "$signing" | store signing-secret root
# The user of the image of Shopfront has the uid 1000.
printf 'SIGNING_SECRET=%s\nDATABASE_URL=%s\n' "$(quoted "$signing")" "$(url database)" | store shopfront.env 1000
printf 'DATABASE_REPLICA_URL=%s\n' "$(url replica)" | store replica.env 1000
