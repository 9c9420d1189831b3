#!/bin/sh
# Runs once, when the primary's folder is new. It lets a standby copy the folder, and makes every commit wait for that standby
# from the next start on, so that nothing waits before the standby exists.
set -eu
echo "host replication all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 \
  --command "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'"
