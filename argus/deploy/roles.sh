#!/bin/sh
# Once, when the database is made: the two roles, the database and its extensions. The image of
# PostgreSQL runs it as the superuser; elsewhere run it by hand with the same variables.
set -eu

psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    -v owner_password="$OWNER_PASSWORD" -v app_password="$APP_PASSWORD" <<'SQL'
CREATE ROLE argus_owner LOGIN NOSUPERUSER NOCREATEROLE CREATEDB PASSWORD :'owner_password';
CREATE ROLE argus_app LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB PASSWORD :'app_password';
CREATE DATABASE argus OWNER argus_owner;
\connect argus
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
SQL
