-- The logins of the gateway in a new PostgreSQL: one that owns the schema and migrates, one that serves and can do no
-- more than row-level security lets it, and one that nobody logs in as.
\set ON_ERROR_STOP on
\if :{?secrets}
\else
\set secrets /run/secrets
\endif
\set owner_password `cat :secrets/database_owner_password`
\set app_password `cat :secrets/database_app_password`

create role gateway_owner login nosuperuser nobypassrls noinherit password :'owner_password';
create role gateway_app login nosuperuser nobypassrls noinherit password :'app_password';
create role gateway_definer nologin nosuperuser nobypassrls noinherit;
grant gateway_definer, gateway_app to gateway_owner with inherit false, set true;

-- On a managed server nobody is a superuser: whoever makes the database for its owner must be able to become the owner.
grant gateway_owner to current_user with inherit false, set true;
create database gateway owner gateway_owner template template0 encoding 'UTF8';
set role gateway_owner;
revoke all on database gateway from public;
grant connect on database gateway to gateway_app;
reset role;
revoke gateway_owner from current_user;
