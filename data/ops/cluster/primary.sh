#!/bin/sh
# Runs once, when the primary's folder is new: lets a standby copy it, and has every commit wait for that standby. That holds
# from the next start on, so that what is made here waits for nobody.
set -eu
echo "host replication all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 \
  --command "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'"
