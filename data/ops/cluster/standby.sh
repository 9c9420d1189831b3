#!/bin/sh
# Copies the primary ($PRIMARY, a URL) to $PGDATA if that is empty, then follows it as "standby".
# To make it the primary: docker compose exec standby pg_ctl promote; then point the gateways' URL at it.
set -eu
if [ ! -e "$PGDATA" ]; then
  rm -rf "$PGDATA.new"
  # Under another name, since no commit may rely on an unfinished copy.
  until pg_basebackup --dbname "$PRIMARY?application_name=copying" --pgdata "$PGDATA.new" --write-recovery-conf --checkpoint=fast; do
    rm -rf "$PGDATA.new"
    sleep 1
  done
  # If it becomes the primary, its commits wait for no standby until it has one.
  sed -i "/^synchronous_standby_names/d; s/application_name=copying/application_name=standby/" "$PGDATA.new/postgresql.auto.conf"
  mv "$PGDATA.new" "$PGDATA"
fi
exec postgres -D "$PGDATA"
