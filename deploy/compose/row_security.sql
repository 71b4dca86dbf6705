-- For a backup without a superuser. Forced row-level security binds the owner of the tables too, so that it can neither
-- dump nor restore them. `--set=owner=free` frees the owner, and `--set=owner=bound` binds it again. The login that serves
-- owns no table, and is bound all the time. Each statement commits alone: a lock is held for a moment, and the script can be
-- repeated.
\set ON_ERROR_STOP on
set lock_timeout = '10s';
select :'owner' = 'free' as is_free, :'owner' = 'bound' as is_bound \gset
\if :is_free
select format('alter table %s no force row level security', oid::regclass)
from pg_class where relrowsecurity and relnamespace = 'public'::regnamespace \gexec
grant create on schema public to gateway_definer;
\elif :is_bound
select format('alter table %s force row level security', oid::regclass)
from pg_class where relrowsecurity and relnamespace = 'public'::regnamespace \gexec
revoke create on schema public from gateway_definer;
-- A restore gives functions to their owner before their privileges, which only that owner can then set.
set role gateway_definer;
select format('revoke all on function %1$s from public; grant execute on function %1$s to gateway_app', oid::regprocedure)
from pg_proc where proowner = 'gateway_definer'::regrole \gexec
reset role;
\endif
