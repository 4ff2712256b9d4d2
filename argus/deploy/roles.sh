#!/bin/sh
# Once, when the database is made: the two roles, the extensions, the database. The image of
# PostgreSQL runs it as the superuser; elsewhere run it by hand with the same variables.
set -eu

psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    -v owner_password="$OWNER_PASSWORD" -v app_password="$APP_PASSWORD" <<'SQL'
CREATE ROLE argus_owner LOGIN NOSUPERUSER NOCREATEROLE CREATEDB PASSWORD :'owner_password';
CREATE ROLE argus_app LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB PASSWORD :'app_password';
-- Why there: each new database is a copy of it, and `rebuild`, `eval` and `restore` make new ones
-- as the owner, which may not make the extension vector.
\connect template1
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE DATABASE argus OWNER argus_owner TEMPLATE template1;
SQL
