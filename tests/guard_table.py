"""The guards of the gateway: the removal of each, and the test that must fail then.

A guard is a statement of `gateway` or `migrations` that a comment `# guard: NAME` marks (`tests/mutations.py`). What it
protects is in docs/security/guards.md. `python -m tests.guards` takes each out in a copy of the tree.
"""

from dataclasses import dataclass

from tests.mutations import ALWAYS, NEVER, SKIP, Mutation, becomes, swap, value, without


@dataclass(frozen=True, slots=True)
class Guard:
    """One place in the code that keeps something out."""

    name: str
    mutation: Mutation
    test: str
    is_of_each_kind: bool = False
    """True for a guard of the engines of kinds: every case of the test must notice it, and each case is a kind."""


_BY_TEST_FILE: dict[str, dict[str, tuple[Mutation, str]]] = {
    "tests/attacks/test_hostile_manifests.py": {
        "manifest-bytes": (NEVER, "test_files_are_bounded"),
        "manifest-document-bytes": (NEVER, "test_a_document_of_a_source_is_a_bounded_regular_file"),
        "manifest-document-regular": (NEVER, "test_a_document_of_a_source_is_a_bounded_regular_file"),
        "export-names-files": (NEVER, "test_a_gateway_names_no_file_of_an_export"),
        "manifest-document-traversal": (NEVER, "test_documents_of_sources_do_not_leave_the_folder"),
        "manifest-depth": (NEVER, "test_documents_are_values_and_nothing_else"),
        "manifest-documents": (NEVER, "test_documents_are_bounded"),
        "manifest-entries": (NEVER, "test_files_are_bounded"),
        "manifest-files": (NEVER, "test_files_are_bounded"),
        "manifest-linked-folders": (NEVER, "test_links_do_not_leave_the_folder"),
        "manifest-links": (NEVER, "test_links_do_not_leave_the_folder"),
        "manifest-one-tenant": (NEVER, "test_a_document_names_no_other_tenant"),
        "manifest-secret-bytes": (NEVER, "test_a_secret_is_a_small_regular_file"),
        "manifest-secret-literal": (NEVER, "test_a_manifest_holds_no_secret"),
        "manifest-secret-redacted": (NEVER, "test_messages_of_the_gateway_have_no_secret"),
        "manifest-secret-regular": (NEVER, "test_a_secret_is_a_small_regular_file"),
        "manifest-secret-traversal": (NEVER, "test_secrets_do_not_leave_the_folder"),
        "manifest-text": (NEVER, "test_aliases_of_a_long_text_count_as_written_out"),
        "manifest-values": (NEVER, "test_a_value_of_many_documents_is_counted_together"),
        "plan-bytes": (NEVER, "test_a_plan_is_bounded"),
        "plan-expiry": (NEVER, "test_a_plan_is_checked_like_a_manifest"),
    },
    "tests/integration/catalog/sources/test_uploads.py": {
        "upload-digest": (NEVER, "test_a_document_is_found_by_its_digest_until_it_expires"),
        "uploads-bounded": (NEVER, "test_the_oldest_uploads_above_the_limit_are_deleted"),
    },
    "tests/unit/catalog/manifests/test_source_target.py": {
        "manifest-source-as-prepared": (NEVER, "test_a_source_that_moved_is_not_written"),
    },
    "tests/behaviour/manifests/test_issuers.py": {
        "manifest-issuer-adoption": (SKIP, "test_an_admin_applies_issuers_within_its_bounds"),
    },
    "tests/unit/catalog/manifests/test_issuer_target.py": {
        "manifest-issuer-as-prepared": (NEVER, "test_an_issuer_that_moved_is_not_written"),
    },
    "tests/behaviour/manifests/test_sources.py": {
        "apply-documents-bounded": (NEVER, "test_documents_of_one_application_are_bounded"),
        "manifest-pinned-document": (NEVER, "test_a_url_can_be_pinned"),
    },
    "tests/unit/cli/manifests/test_manifest.py": {
        "manifest-duplicates": (NEVER, "test_an_object_has_one_manifest"),
    },
    "tests/behaviour/cli/test_manifest_commands.py": {
        "generated-secrets-in-no-log": (NEVER, "test_generated_secrets_are_shown_once_and_in_no_log"),
        "generated-secrets-replace-no-file": (
            swap("os.O_EXCL", "os.O_TRUNC"),
            "test_generated_secrets_are_shown_once_and_in_no_log",
        ),
        "plan-one-tenant": (NEVER, "test_a_plan_is_applied_while_nothing_has_changed"),
    },
    "tests/attacks/authorization/test_accounts.py": {
        "account-cookies-bounded": (SKIP, "test_forms_links_and_targets_of_others_do_nothing"),
        "account-form": (NEVER, "test_forms_links_and_targets_of_others_do_nothing"),
        "account-key-tenant": (NEVER, "test_a_link_opened_by_another_user_connects_nothing"),
        "account-link-owner": (NEVER, "test_a_link_opened_by_another_user_connects_nothing"),
        "account-of-revoked-key": (SKIP, "test_a_key_with_the_subject_of_another_one_has_no_account"),
        "account-once": (NEVER, "test_a_code_counts_for_the_browser_and_user_that_began"),
        "account-response-issuer": (NEVER, "test_a_response_of_another_server_is_not_taken"),
        "account-same-credential": (NEVER, "test_a_response_of_another_server_is_not_taken"),
        "account-same-user": (NEVER, "test_a_code_counts_for_the_browser_and_user_that_began"),
        "account-state": (NEVER, "test_a_code_counts_for_the_browser_and_user_that_began"),
    },
    "tests/behaviour/people/test_accounts.py": {
        "approval-given-back": (without(3), "test_an_approval_is_kept_until_its_call_has_an_account"),
        "account-endpoints-tls": (SKIP, "test_other_terms_of_a_credential_end_its_accounts"),
        "account-parameters": (NEVER, "test_other_terms_of_a_credential_end_its_accounts"),
        "account-refresh-once": (NEVER, "test_tokens_are_refreshed_once_by_all_replicas"),
        "account-terms-replaced": (value("0"), "test_other_terms_of_a_credential_end_its_accounts"),
    },
    "tests/unit/openapi/review/test_changes.py": {
        "rule-no-new-text": (NEVER, "test_new_text_in_a_known_tool_is_no_addition"),
        "rule-whole-comparison": (NEVER, "test_more_differences_than_are_compared_are_no_addition"),
        "rule-no-new-documentation": (
            swap(" and is_section", ""),
            "test_texts_of_the_query_tools_are_compared",
        ),
    },
    "tests/integration/catalog/test_kept_secrets.py": {
        "prepared-unchanged": (NEVER, "test_a_change_that_another_one_overtakes_is_refused"),
    },
    "tests/unit/domain/test_secrets.py": {
        "secret-shown-nowhere": (NEVER, "test_models_show_no_secret"),
        "secret-in-no-trail": (NEVER, "test_the_trail_names_a_new_secret_without_it"),
    },
    "tests/integration/catalog/test_accounts.py": {
        "account-owner-valid": (NEVER, "test_a_person_denied_in_between_connects_nothing"),
        "account-terms": (without(2), "test_an_account_counts_for_its_terms_only"),
        "account-terms-unchanged": (without(2), "test_an_account_counts_for_its_terms_only"),
        "accounts-bounded": (NEVER, "test_accounts_are_bounded"),
    },
    "tests/integration/store/test_accounts.py": {
        "account-lease": (swap(", _columns.lease == lease", ""), "test_a_late_refresh_replaces_no_newer_tokens"),
        "account-tokens-sealed": (
            value("('x',)"),
            "test_tokens_open_only_for_their_owner_credential_and_terms",
        ),
    },
    "tests/unit/identity/test_own_audiences.py": {
        "own-audience-urls": (NEVER, "test_urls_of_the_gateway_are_its_audiences"),
    },
    "tests/unit/identity/test_account_links.py": {
        "account-link-host": (NEVER, "test_a_link_has_the_public_url_and_no_user"),
    },
    "tests/attacks/test_access_tokens.py": {
        "key-size": (NEVER, "test_a_key_that_is_weak_or_costly_verifies_nothing"),
        "key-use": (NEVER, "test_a_key_that_is_weak_or_costly_verifies_nothing"),
        "person-no-key": (becomes("_NO_PERSON: Mapping[str, None] = {}"), "test_a_person_takes_over_nothing_of_a_key"),
        "token-audience": (
            swap(
                "audience=list(audiences)", "audience=jwt.decode(text, options={'verify_signature': False}).get('aud')"
            ),
            "test_a_token_for_one_tenant_is_none_at_another",
        ),
        "token-bound-as-bearer": (NEVER, "test_a_token_that_is_none_is_refused_like_a_wrong_key"),
        "token-bound-elsewhere": (NEVER, "test_a_refused_token_is_explained_in_the_trail"),
        "token-issuer": (value("found.issuers[0]"), "test_a_refused_token_is_explained_in_the_trail"),
        "token-lifetime": (
            swap('min(float(claims["exp"]), ', 'max(float(claims["exp"]), '),
            "test_a_token_that_is_none_is_refused_like_a_wrong_key",
        ),
        "token-subject-form": (NEVER, "test_a_token_that_is_none_is_refused_like_a_wrong_key"),
        "token-times": (
            swap('"verify_exp": True', '"verify_exp": False'),
            "test_a_refused_token_is_explained_in_the_trail",
        ),
        "token-type": (NEVER, "test_a_token_that_is_none_is_refused_like_a_wrong_key"),
    },
    "tests/attacks/test_bound_tokens.py": {
        "dpop-required": (NEVER, "test_an_issuer_may_demand_bound_tokens"),
        "remembered-apart": (swap("\\n", " "), "test_a_bound_token_is_no_bearer_token_and_the_reverse"),
        "bound-tokens-only": (NEVER, "test_a_bound_token_is_no_bearer_token_and_the_reverse"),
        "one-proof": (value("fields.get(b'dpop')"), "test_a_proof_that_is_not_of_the_request_is_refused"),
    },
    "tests/unit/identity/test_dpop.py": {
        "proof-key": (NEVER, "test_a_proof_of_anything_else_is_refused"),
        "proof-method": (NEVER, "test_a_proof_of_anything_else_is_refused"),
        "proof-cheap-key": (NEVER, "test_keys_that_are_expensive_to_verify_are_refused"),
        "proof-once": (NEVER, "test_a_proof_counts_once_in_its_tenant"),
        "proof-public-key": (without(2), "test_a_proof_of_anything_else_is_refused"),
        "proof-rates-apart": (swap("tokens of ", ""), "test_unknown_callers_of_the_token_endpoint_refuse_no_calls"),
        "proof-rate": (NEVER, "test_proofs_are_refused_while_their_use_cannot_be_stored"),
        "proof-time": (NEVER, "test_a_proof_of_anything_else_is_refused"),
        "proof-token": (NEVER, "test_a_proof_of_anything_else_is_refused"),
        "proof-type": (NEVER, "test_a_proof_of_anything_else_is_refused"),
        "proof-url": (NEVER, "test_a_proof_of_anything_else_is_refused"),
    },
    "tests/attacks/test_introspection.py": {
        "introspection-closed": (SKIP, "test_a_token_that_the_issuer_does_not_vouch_for_is_refused"),
        "introspection-kind": (NEVER, "test_a_token_that_the_issuer_does_not_vouch_for_is_refused"),
        "introspection-no-keys": (NEVER, "test_no_key_and_no_forged_jwt_goes_to_an_issuer"),
        "introspection-one-issuer": (NEVER, "test_a_client_without_introspection_rights_is_refused_when_it_is_stored"),
        "introspection-rate": (NEVER, "test_a_flood_of_invented_tokens_delays_no_other_caller"),
        "introspection-state": (NEVER, "test_a_token_that_the_issuer_does_not_vouch_for_is_refused"),
        "introspection-tls": (SKIP, "test_a_client_without_introspection_rights_is_refused_when_it_is_stored"),
    },
    "tests/integration/identity/test_introspection.py": {
        "introspection-secret-failures": (
            value("0.0"),
            "test_a_flood_of_invented_tokens_reads_an_external_secret_once",
        ),
        "opaque-token-of-its-issuer": (
            without(2),
            "test_an_opaque_token_for_the_gateway_is_recognised_by_its_own_issuer_only",
        ),
        "introspection-end": (
            value("float(client.cache_s)"),
            "test_an_answer_never_counts_beyond_the_end_of_its_token",
        ),
        "introspection-inactive-cached": (NEVER, "test_a_refused_token_is_not_introspected_again_at_once"),
        "introspection-known-first": (value("flights.unknown"), "test_known_tokens_do_not_wait_for_unknown_ones"),
        "introspection-streams": (
            value("True"),
            "test_a_stream_continues_only_while_the_issuer_vouches_for_its_token",
        ),
        "introspection-verified-apart": (
            value("((self._all, tenant),)"),
            "test_invented_tokens_use_up_nothing_of_verified_ones",
        ),
        "introspection-waiting": (NEVER, "test_known_tokens_do_not_wait_for_unknown_ones"),
        "remembered-introspection": (
            SKIP,
            "test_a_caller_is_remembered_no_longer_than_the_answer_counts",
        ),
        "still-valid-introspection": (
            swap(" and (self.people is None or await self.people.is_active(principal))", ""),
            "test_a_caller_is_remembered_no_longer_than_the_answer_counts",
        ),
    },
    "tests/unit/registry/test_access.py": {
        "access-counted-level": (
            swap("safety=form.level", "safety=form.safety"),
            "test_the_level_of_rules_is_the_one_that_policy_counts",
        ),
        "access-denies": (
            swap("not found & self._denies and ", ""),
            "test_a_deny_rule_wins_then_an_allow_rule_then_the_default",
        ),
        "access-queries": (value("needed"), "test_a_denied_query_tool_is_not_added_to_a_profile"),
        "access-details": (NEVER, "test_a_denied_tool_for_details_is_not_added_to_a_list"),
        "access-facts": (
            swap("principal.packed_groups", "None"),
            "test_the_same_person_with_other_groups_has_another_view",
        ),
        "access-group-form": (swap(" if claim.isprintable()", ""), "test_groups_cannot_smuggle_another_group"),
        "access-hidden-uri": (NEVER, "test_a_template_is_no_way_to_a_denied_resource"),
        "access-missing-groups": (NEVER, "test_a_token_that_leaves_groups_out_has_unknown_ones"),
        "access-operation-behind": (NEVER, "test_a_rule_about_an_operation_covers_its_declared_tools"),
        "access-scope-facts": (
            swap(", principal.packed_scopes", ", None"),
            "test_a_token_with_other_scopes_has_another_view_and_other_results",
        ),
        "access-scope-issuer": (swap("{self.name}:", ""), "test_scopes_of_a_token_are_those_of_its_issuer"),
        "access-unknown-groups": (NEVER, "test_unknown_groups_are_taken_in_the_stricter_sense"),
        "access-unless": (value("named"), "test_a_deny_rule_wins_then_an_allow_rule_then_the_default"),
        "access-uri": (
            swap("if not access.denies_uri(rules, route.primitive, uri)", ""),
            "test_a_template_is_no_way_to_a_denied_uri",
        ),
        "role-of-people": (NEVER, "test_roles_are_of_people_and_unknown_groups_give_no_role"),
        "role-unknown-groups": (
            swap("not knows_groups and any(", "False and any("),
            "test_roles_are_of_people_and_unknown_groups_give_no_role",
        ),
        "cursor-of-its-view": (swap(" + shown.variant", ""), "test_a_cursor_belongs_to_the_rules_that_apply"),
        "mirrored-of-shown": (value("found"), "test_a_denied_tool_does_not_show_itself_by_its_headers"),
    },
    "tests/attacks/test_admin_bounds.py": {
        "delegated-issuers": (NEVER, "test_an_owner_accepts_no_issuer_unless_it_may"),
        "delegated-keys": (NEVER, "test_an_owner_has_so_many_keys"),
        "delegated-lifetime": (NEVER, "test_an_owner_grants_only_delegated_scopes"),
        "delegated-scopes": (NEVER, "test_an_owner_grants_only_delegated_scopes"),
        "last-owner": (NEVER, "test_the_last_owner_is_not_locked_out_by_mistake"),
    },
    "tests/attacks/authorization/test_approvers.py": {
        "approval-provider-asked": (
            swap("else _NOW", "else STALE"),
            "test_nothing_is_approved_without_the_providers_answer",
        ),
        "approver-admitted": (NEVER, "test_a_person_that_the_issuer_no_longer_admits_decides_nothing"),
        "approver-role": (NEVER, "test_a_group_or_role_lost_between_the_page_and_the_click_counts"),
        "role-delegated": (NEVER, "test_admins_give_no_role_that_they_cannot_give_to_a_key"),
        "role-grant": (NEVER, "test_admins_give_no_role_that_they_cannot_give_to_a_key"),
        "role-issuer": (NEVER, "test_admins_give_no_role_that_they_cannot_give_to_a_key"),
        "role-issuer-named": (swap("current.name", "name"), "test_admins_give_no_role_that_they_cannot_give_to_a_key"),
        "role-issuer-deleted": (
            swap("current.name", "name"),
            "test_admins_give_no_role_that_they_cannot_give_to_a_key",
        ),
    },
    "tests/attacks/authorization/test_bound_grants.py": {
        "grant-dpop-required": (NEVER, "test_an_issuer_may_demand_that_clients_prove_a_key"),
        "issued-dpop-required": (SKIP, "test_an_issuer_may_demand_that_clients_prove_a_key"),
        "issued-token-bound": (NEVER, "test_a_token_that_was_issued_for_a_key_is_used_with_it_only"),
        "refresh-bound": (NEVER, "test_a_refresh_token_of_a_public_client_is_of_use_with_its_key_only"),
        "refresh-reuse-without-key": (NEVER, "test_a_replaced_refresh_token_ends_its_grant_with_its_key_only"),
    },
    "tests/behaviour/people/test_authorization_replicas.py": {
        "issuer-change-announced": (SKIP, "test_a_change_of_an_issuer_reaches_cached_tokens_of_all_replicas"),
    },
    "tests/attacks/authorization/test_administrators.py": {
        "role-kinds-known": (NEVER, "test_a_role_is_limited_to_manifests_of_its_kinds"),
        "role-kinds-elsewhere": (NEVER, "test_a_role_is_limited_to_manifests_of_its_kinds"),
        "role-kinds-applied": (NEVER, "test_a_role_is_limited_to_manifests_of_its_kinds"),
        "role-kinds-expected": (NEVER, "test_a_role_is_limited_to_manifests_of_its_kinds"),
        "role-kinds-pruned": (NEVER, "test_a_role_is_limited_to_manifests_of_its_kinds"),
        "admin-token-approves-nothing": (
            swap(" - {Role.APPROVE}", ""),
            "test_people_have_the_scopes_of_their_roles_and_no_others",
        ),
        "key-makers-behind": (
            swap("own.makers if maker", "() if maker"),
            "test_keys_that_a_denied_person_made_are_named",
        ),
        "admin-metadata-issuers": (NEVER, "test_a_client_of_the_admin_api_finds_the_issuer"),
        "metadata-of-the-resource": (
            swap(" or resource.path != target.path", ""),
            "test_a_client_of_the_admin_api_finds_the_issuer",
        ),
        "admin-token-audience": (NEVER, "test_a_token_for_another_url_is_none_at_the_admin_api"),
    },
    "tests/integration/connections/test_following.py": {
        "stream-of-another-token": (
            swap(".credential == ended", " == principal"),
            "test_a_revoked_token_ends_its_own_streams_only",
        ),
        "stream-of-its-token": (
            swap("principal.credential: principal", "principal: principal"),
            "test_a_revoked_token_ends_its_own_streams_only",
        ),
    },
    "tests/attacks/test_access_rules.py": {
        "access-gate": (NEVER, "test_no_way_leads_to_a_denied_tool"),
        "access-patterns": (NEVER, "test_rules_of_extreme_size_are_refused"),
        "access-unreadable-kept": (NEVER, "test_rules_of_a_later_release_fail_only_for_their_subjects"),
        "access-scope-permits": (NEVER, "test_no_rule_takes_primitives_away_because_of_a_scope"),
        "task-access": (NEVER, "test_results_of_a_token_are_hidden_from_a_weaker_one"),
    },
    "tests/attacks/test_sign_in.py": {
        "form-field-once": (NEVER, "test_a_parameter_that_comes_twice_is_refused"),
        "id-token-audience": (
            swap("(client,)", "[jwt.decode(text, options={'verify_signature': False})['aud']]"),
            "test_an_id_token_of_another_sign_in_is_refused",
        ),
        "id-token-nonce": (NEVER, "test_an_id_token_of_another_sign_in_is_refused"),
        "id-token-party": (NEVER, "test_an_id_token_of_another_sign_in_is_refused"),
        "id-token-type": (NEVER, "test_an_access_token_is_no_id_token"),
        "people-failures-counted": (SKIP, "test_looking_for_tenants_by_their_pages_counts_as_failures"),
        "people-rate-address": (SKIP, "test_floods_of_sign_ins_are_limited_by_address_and_tenant"),
        "people-rate-tenant": (SKIP, "test_floods_of_sign_ins_are_limited_by_address_and_tenant"),
        "session-person-version": (
            without(2),
            "test_not_admitted_and_denied_people_get_no_session",
        ),
        "session-rules": (NEVER, "test_claims_that_lost_their_groups_end_the_session"),
        "sign-in-cookies-bounded": (SKIP, "test_many_begun_sign_ins_fill_no_browser"),
        "sign-in-denied": (NEVER, "test_not_admitted_and_denied_people_get_no_session"),
        "sign-in-issuer": (NEVER, "test_a_response_of_another_provider_is_not_taken"),
        "sign-in-once": (NEVER, "test_a_state_is_of_one_browser_and_works_once"),
        "sign-in-response-issuer": (NEVER, "test_a_response_of_another_provider_is_not_taken"),
        "sign-in-rules": (NEVER, "test_not_admitted_and_denied_people_get_no_session"),
        "sign-in-state": (NEVER, "test_a_state_is_of_one_browser_and_works_once"),
        "sign-in-target": (NEVER, "test_a_sign_in_leads_to_pages_of_its_tenant_only"),
        "userinfo-groups-unknown": (value("claims"), "test_groups_that_userinfo_does_not_give_are_not_known"),
        "userinfo-same-person": (NEVER, "test_groups_come_from_userinfo_of_the_same_person"),
    },
    "tests/attacks/authorization/test_clients.py": {
        "client-authenticated": (ALWAYS, "test_a_confidential_client_proves_its_secret_once_and_in_one_way"),
        "client-once": (NEVER, "test_a_confidential_client_proves_its_secret_once_and_in_one_way"),
        "client-same": (NEVER, "test_a_confidential_client_proves_its_secret_once_and_in_one_way"),
        "client-secret": (value("True"), "test_a_confidential_client_proves_its_secret_once_and_in_one_way"),
        "registration-permitted": (NEVER, "test_a_client_registers_only_where_it_may"),
        "registration-rate": (NEVER, "test_floods_of_registrations_are_limited"),
        "registrations-bounded": (NEVER, "test_floods_of_registrations_are_limited"),
        "token-proofs-counted": (SKIP, "test_guesses_at_the_token_endpoint_count_as_failures"),
        "token-failures-counted": (SKIP, "test_guesses_at_the_token_endpoint_count_as_failures"),
    },
    "tests/attacks/authorization/test_consent.py": {
        "authorize-error-link": (ALWAYS, "test_an_error_leads_to_a_client_that_registered_itself_by_a_link_only"),
        "authorize-redirect-registered": (NEVER, "test_an_unknown_client_or_redirect_uri_leads_nowhere"),
        "consent-choice": (NEVER, "test_a_consent_needs_the_form_of_the_page_and_of_the_session"),
        "consent-native": (NEVER, "test_a_program_on_the_machine_is_asked_about_each_time"),
        "consent-redirect-registered": (NEVER, "test_a_request_is_checked_again_when_the_person_decides"),
        "consent-rules": (NEVER, "test_a_request_is_checked_again_when_the_person_decides"),
        "consent-scopes": (without(2), "test_more_scopes_than_before_are_asked_about"),
        "consents-bounded": (NEVER, "test_a_person_has_few_consents"),
        "pkce-challenge": (NEVER, "test_a_request_that_is_weaker_than_it_has_to_be_is_refused"),
        "resource-tenant": (ALWAYS, "test_a_request_that_is_weaker_than_it_has_to_be_is_refused"),
    },
    "tests/attacks/authorization/test_grants.py": {
        "code-digest": (without(3), "test_a_code_that_is_guessed_ended_or_revoked_brings_nothing"),
        "code-redirect": (NEVER, "test_a_code_is_of_its_client_its_redirect_uri_and_its_verifier"),
        "code-replay": (SKIP, "test_a_code_works_once_and_its_second_use_revokes_its_tokens"),
        "code-used-once": (
            swap(", _columns.code_used_at.is_(None)", ""),
            "test_a_code_works_once_and_its_second_use_revokes_its_tokens",
        ),
        "grant-end-announced": (value("[]"), "test_a_revoked_grant_is_refused_at_once_where_it_was_revoked"),
        "grant-issuer": (NEVER, "test_denied_and_not_admitted_people_get_no_more_tokens"),
        "grant-person-denied": (without(1), "test_denied_and_not_admitted_people_get_no_more_tokens"),
        "grant-rules": (NEVER, "test_denied_and_not_admitted_people_get_no_more_tokens"),
        "granted-scopes": (swap(" & person.scopes", ""), "test_a_token_has_the_scopes_that_the_provider_granted"),
        "grants-bounded": (SKIP, "test_a_further_grant_ends_the_oldest"),
        "issued-token-grant": (NEVER, "test_a_token_that_another_purpose_signed_or_an_issuer_lost_is_refused"),
        "issued-token-provider": (NEVER, "test_denied_and_not_admitted_people_get_no_more_tokens"),
        "provider-ends-grants": (NEVER, "test_a_sign_in_counts_for_a_bounded_time"),
        "refresh-end": (NEVER, "test_a_refresh_token_ends_with_its_grant_and_a_guess_ends_nothing"),
        "refresh-family": (NEVER, "test_a_refresh_token_ends_with_its_grant_and_a_guess_ends_nothing"),
        "refresh-retry": (ALWAYS, "test_a_refresh_token_is_replaced_and_its_reuse_ends_the_grant"),
        "refresh-reuse": (NEVER, "test_a_refresh_token_is_replaced_and_its_reuse_ends_the_grant"),
        "refresh-revoked": (without(2), "test_a_refresh_token_ends_with_its_grant_and_a_guess_ends_nothing"),
        "sign-in-stale": (NEVER, "test_a_sign_in_counts_for_a_bounded_time"),
        "refresh-unchecked": (
            swap("asked_at if found.state is ClaimsState.CURRENT else sign_in.checked_at", "asked_at"),
            "test_a_provider_that_repeats_no_claims_is_believed_for_a_bounded_time",
        ),
        "sign-in-unchecked": (NEVER, "test_a_sign_in_counts_for_a_bounded_time"),
        "token-resource": (NEVER, "test_a_code_is_of_its_client_its_redirect_uri_and_its_verifier"),
    },
    "tests/integration/identity/test_client_documents.py": {
        "client-document-own": (
            NEVER,
            "test_a_document_that_is_not_the_clients_own_or_too_much_is_refused",
        ),
        "client-document-size": (
            swap("limit=MAX_CLIENT_DOCUMENT_BYTES", "limit=10**8"),
            "test_a_document_that_is_not_the_clients_own_or_too_much_is_refused",
        ),
        "client-document-time": (swap("DOCUMENT_FETCH_S", "600"), "test_a_document_that_does_not_end_times_out"),
        "client-document-stale": (NEVER, "test_a_client_outlasts_an_outage_of_its_host"),
        "client-document-withdrawn": (SKIP, "test_a_client_ends_with_its_document"),
        "client-documents-network-rate": (
            swap('self._network_rates.take(f"{tenant} {network}") or ', ""),
            "test_made_up_clients_of_one_network_keep_none_of_another_out",
        ),
        "client-documents-rate": (NEVER, "test_a_tenant_fetches_at_a_bounded_rate"),
        "known-client-documents-rate": (NEVER, "test_a_known_client_signs_in_during_a_flood_of_made_up_ones"),
        "known-client-documents-slots": (
            swap("self._known_pool if is_known else self._pool", "self._pool"),
            "test_a_known_client_signs_in_during_a_flood_of_made_up_ones",
        ),
        "client-redirect-uris": (
            NEVER,
            "test_a_document_that_is_not_the_clients_own_or_too_much_is_refused",
        ),
    },
    "tests/unit/domain/tenancy/test_redirect_uris.py": {
        "redirect-exact": (NEVER, "test_a_redirect_uri_is_compared_as_text"),
        "redirect-scheme": (without(1), "test_permitted_redirect_uris"),
    },
    "tests/unit/identity/test_verified_tokens.py": {
        "verified-token-audience": (
            swap('f"{audience}\\n{text}"', "text"),
            "test_a_remembered_token_is_of_one_tenant_and_one_audience",
        ),
        "verified-token-end": (NEVER, "test_a_remembered_token_expires"),
        "verified-token-issuer": (
            swap("issuer.id == held.issuer and issuer.version == held.version", "issuer.id == held.issuer"),
            "test_a_remembered_token_ends_with_the_settings_of_its_issuer",
        ),
        "verified-token-keys": (NEVER, "test_a_remembered_token_ends_with_its_key"),
        "verified-issued-token-end": (
            ALWAYS,
            "test_a_token_of_the_gateway_is_verified_once_for_a_tenant_and_a_resource",
        ),
    },
    "tests/unit/identity/test_clients.py": {
        "client-hosts": (NEVER, "test_the_hosts_of_documents_can_be_limited"),
        "consent-name-alike": (NEVER, "test_forged_metadata_is_marked"),
        "consent-name-length": (
            swap("truncate(client.name, MAX_SHOWN_NAME_LENGTH)", "client.name"),
            "test_forged_metadata_is_marked",
        ),
        "consent-other-host": (NEVER, "test_forged_metadata_is_marked"),
        "request-tenant": (ALWAYS, "test_a_sealed_request_is_of_one_tenant"),
    },
    "tests/unit/identity/test_issued_tokens.py": {
        "issued-token-audience": (
            swap("audience=audience", "audience=jwt.decode(text, options={'verify_signature': False}).get('aud')"),
            "test_a_token_is_for_one_issuer_and_one_resource",
        ),
        "issued-token-groups": (
            swap("person.has_all_groups", "True"),
            "test_a_person_of_too_many_groups_is_known_to_have_more",
        ),
        "issued-token-issuer": (SKIP, "test_a_token_is_for_one_issuer_and_one_resource"),
        "issued-token-type": (without(2), "test_neither_an_assertion_nor_an_ended_or_incomplete_token_is_one"),
    },
    "tests/behaviour/people/test_tenant_page.py": {
        "consent-own": (NEVER, "test_a_consent_is_revoked_by_its_own_person_only"),
        "tenant-page-key-form": (NEVER, "test_the_holder_of_a_key_sees_the_profile_of_the_key"),
        "tenant-page-key-sign-in": (NEVER, "test_unknown_visitors_see_the_same_sign_in_for_every_tenant"),
        "tenant-page-key-tenant": (
            swap("held.principal.slug == slug", "True"),
            "test_the_holder_of_a_key_sees_the_profile_of_the_key",
        ),
        "tenant-page-profile": (NEVER, "test_a_person_sees_the_profiles_that_a_rule_admits"),
        "tenant-page-slug": (NEVER, "test_unknown_visitors_see_the_same_sign_in_for_every_tenant"),
    },
    "tests/behaviour/console/test_start_page.py": {
        "visitor-location": (
            swap("_MCP_PATH.fullmatch(path)", "re.fullmatch('/t/(?P<slug>[^/]+)(?:/mcp)?', path)"),
            "test_no_other_path_becomes_a_location",
        ),
    },
    "tests/unit/web/people/test_tenant_page.py": {
        "tenant-page-stranger": (ALWAYS, "test_an_unauthenticated_request_looks_up_nothing"),
    },
    "tests/behaviour/people/test_browser_sign_in.py": {
        "people-origin": (NEVER, "test_a_person_signs_in_and_out"),
        "person-form-token": (NEVER, "test_a_person_signs_in_and_out"),
        "session-ended": (without(2), "test_a_person_signs_in_and_out"),
        "sign-in-client-no-audience": (NEVER, "test_a_client_that_cannot_work_is_refused"),
        "sign-in-endpoints-tls": (SKIP, "test_endpoints_of_a_provider_need_tls"),
        "sign-in-parameters": (NEVER, "test_a_client_that_cannot_work_is_refused"),
    },
    "tests/integration/identity/test_relying_party.py": {
        "refresh-groups-unknown": (value("person"), "test_groups_that_a_refresh_omits_are_unknown"),
        "refresh-same-person": (NEVER, "test_a_refresh_never_makes_another_person"),
        "refresh-undescribed": (
            swap("replace(before, groups=frozenset(), has_all_groups=False,", "replace(before,"),
            "test_groups_that_a_refresh_omits_are_unknown",
        ),
    },
    "tests/integration/store/test_access_rules.py": {
        "access-unknown-default": (
            value("True"),
            "test_rules_and_roles_of_a_later_release_are_read_in_the_strictest_sense",
        ),
        "access-unknown-entries": (
            value("True"),
            "test_rules_and_roles_of_a_later_release_are_read_in_the_strictest_sense",
        ),
        "access-unknown-members": (
            value("True"),
            "test_rules_and_roles_of_a_later_release_are_read_in_the_strictest_sense",
        ),
    },
    "tests/integration/store/test_sign_ins.py": {
        "introspection-secret-sealed": (
            value("()"),
            "test_the_secret_of_an_introspection_client_opens_only_for_its_client_and_endpoint",
        ),
        "sign-in-lease": (swap(", _columns.lease == lease", ""), "test_one_holder_of_the_lease_stores_tokens"),
        "client-reference-sealed": (
            swap("\\n{reference}", ""),
            "test_a_reference_to_the_secret_of_a_client_opens_only_as_it_was_sealed",
        ),
        "sign-in-secret-sealed": (
            value("()"),
            "test_the_secret_of_a_client_opens_only_for_its_client_and_endpoint",
        ),
        "sign-in-with-grants-kept": (
            swap(", ~exists().where(matches)", ""),
            "test_ended_sessions_are_deleted_and_many_end_the_oldest",
        ),
        "sign-in-tokens-sealed": (value("('x',)"), "test_tokens_open_only_for_the_sign_in_that_they_are_of"),
    },
    "tests/unit/web/people/test_sessions.py": {
        "cookie-name": (ALWAYS, "test_a_cookie_has_its_name_sealed_in_and_ends"),
        "session-transport": (without(2), "test_a_cookie_of_the_other_transport_is_no_session"),
    },
    "tests/behaviour/people/test_sign_in.py": {
        "issuer-audiences-operator": (NEVER, "test_an_admin_of_a_tenant_names_no_audience"),
        "issuer-author-grants": (NEVER, "test_an_admin_of_a_tenant_names_no_audience"),
        "issuer-null-conditions": (NEVER, "test_a_null_condition_alone_admits_no_one"),
        "issuer-metadata-own": (NEVER, "test_an_issuer_that_cannot_work_is_refused"),
        "issuer-rule-profiles": (
            swap("profile in self.profiles", "True"),
            "test_a_rule_admits_to_the_profiles_that_it_names",
        ),
        "issuer-rules": (value("True"), "test_a_token_without_the_scope_gets_its_name"),
        "metadata-failures-counted": (SKIP, "test_metadata_of_made_up_tenants_counts_as_failures"),
        "person-denied": (NEVER, "test_a_denied_person_is_refused_and_so_are_the_persons_keys"),
    },
    "tests/integration/store/test_own_nouns.py": {
        "reference-sealed": (value("()"), "test_a_credential_opens_only_as_it_was_sealed"),
        "delegation-sealed": (value("()"), "test_a_credential_opens_only_as_it_was_sealed"),
    },
    "tests/behaviour/people/test_granted_exchange.py": {
        "subject-token-grant": (
            without(3),
            "test_an_ended_token_of_the_provider_is_renewed_unless_the_grant_ended",
        ),
    },
    "tests/behaviour/people/test_delegation.py": {
        "assertion-audience": (NEVER, "test_a_delegation_that_cannot_work_is_refused"),
        "exchange-other-token": (NEVER, "test_a_token_that_is_valid_at_the_gateway_is_not_passed_on"),
        "delegated-opaque-for-gateway": (NEVER, "test_an_opaque_token_that_is_valid_at_the_gateway_is_not_passed_on"),
        "delegated-token-for-gateway": (SKIP, "test_a_token_that_is_valid_at_the_gateway_is_not_passed_on"),
        "delegated-for-gateway-stored": (SKIP, "test_a_token_that_is_valid_at_the_gateway_is_not_passed_on"),
        "delegated-for-gateway": (NEVER, "test_a_delegation_that_cannot_work_is_refused"),
        "exchange-own-audience": (NEVER, "test_a_delegation_that_cannot_work_is_refused"),
        "delegation-without-caller": (NEVER, "test_requests_without_a_caller_have_no_credential_of_one"),
        "delegation-without-caller-declared": (NEVER, "test_requests_without_a_caller_have_no_credential_of_one"),
        "exchange-issuer": (NEVER, "test_a_token_goes_to_its_own_issuer_only"),
        "live-caller-credential": (
            value("False"),
            "test_a_remote_server_gets_the_identity_of_each_caller_and_no_other",
        ),
        "live-caller-renewed": (value("False"), "test_a_remote_server_gets_the_identity_of_each_caller_and_no_other"),
        "reference-echo": (value("response"), "test_an_echoed_token_of_the_caller_reaches_no_client"),
    },
    "tests/integration/catalog/test_people.py": {
        "issuer-change-ends": (SKIP, "test_a_change_of_an_issuer_ends_streams_of_its_people"),
        "issuers-bounded": (NEVER, "test_issuers_are_bounded_and_need_tls"),
        "people-bounded": (NEVER, "test_people_are_bounded_and_old_ones_make_room"),
        "sign-in-sessions-bounded": (SKIP, "test_a_person_has_few_sessions"),
    },
    "tests/integration/upstream/auth/test_key_sets.py": {
        "key-set-of-this-state": (swap("url, state", 'url, ""'), "test_a_set_belongs_to_one_state_of_its_issuer"),
        "key-set-rate": (ALWAYS, "test_unknown_key_ids_fetch_at_a_bounded_rate"),
        "key-set-waiting": (NEVER, "test_requests_that_wait_for_a_set_are_bounded"),
    },
    "tests/unit/identity/test_people.py": {
        "headers-of-access-tokens": (ALWAYS, "test_headers_with_keys_are_not_kept_in_memory"),
        "sign-ins-once": (value("await sign_in()"), "test_concurrent_requests_with_one_token_are_one_lookup"),
        "sign-ins-after-a-change": (SKIP, "test_a_lookup_before_a_change_is_not_for_requests_after_it"),
        "sign-ins-after-a-denial": (SKIP, "test_a_lookup_before_a_change_is_not_for_requests_after_it"),
        "key-is-no-token": (without(3), "test_a_key_is_no_access_token_wherever_it_is_used"),
        "issuer-lookups-batched": (NEVER, "test_suspects_look_up_issuers_in_batches"),
        "person-taken-along-changed": (NEVER, "test_a_changed_person_is_signed_in_again"),
        "remembered-by-resource": (SKIP, "test_a_cached_token_is_for_the_resource_that_it_was_checked_for"),
        "resource-path": (
            swap(
                "_PATH.fullmatch(target.path)",
                "re.fullmatch('(?P<place>/t/(?P<slug>.*?)(?P<profile>)?)/(?P<door>mcp)', target.path, re.S)",
            ),
            "test_only_names_of_tenants_reach_a_header",
        ),
        "token-algorithm": (NEVER, "test_an_algorithm_that_the_issuer_does_not_use_is_refused"),
    },
    "tests/attacks/test_tasks.py": {
        "task-answer-form": (NEVER, "test_answers_that_are_none_change_nothing"),
        "task-id-form": (ALWAYS, "test_an_id_of_any_form_is_only_unknown"),
        "task-owner": (without(2), "test_a_foreign_task_is_one_that_does_not_exist"),
    },
    "tests/behaviour/tasks/test_approved_tasks.py": {
        "task-noted-before-approved-effects": (SKIP, "test_an_approved_task_that_was_sent_is_not_run_again"),
    },
    "tests/behaviour/tasks/test_followed_tasks.py": {
        "listened-tasks-declared": (NEVER, "test_tasks_that_cannot_be_followed_are_refused"),
        "listened-tasks-owned": (
            value("(tasks.c.tenant_id == tenant,)"),
            "test_only_tasks_of_the_client_are_followed",
        ),
    },
    "tests/behaviour/tasks/test_tasks.py": {
        "task-for-declared-clients": (ALWAYS, "test_only_a_client_that_declared_tasks_in_the_request_gets_one"),
        "task-id-mirrored": (NEVER, "test_the_header_has_to_name_the_task"),
        "task-intent-fenced": (NEVER, "test_a_run_that_lost_its_lease_has_no_effects"),
        "task-of-a-valid-key": (NEVER, "test_a_revoked_key_ends_its_tasks"),
        "task-required": (NEVER, "test_only_a_client_that_declared_tasks_in_the_request_gets_one"),
        "tasks-declared": (NEVER, "test_only_a_client_that_declared_tasks_in_the_request_gets_one"),
        "tasks-not-on-the-fast-path": (NEVER, "test_a_slow_call_becomes_a_task_and_its_result_is_kept"),
    },
    "tests/behaviour/tasks/test_tasks_on_two.py": {
        "task-cancel-reaches-its-run": (SKIP, "test_a_cancellation_reaches_the_replica_that_runs_the_task"),
        "task-noted-before-effects": (SKIP, "test_a_task_with_an_intent_is_never_run_again"),
    },
    "tests/integration/catalog/test_mcp_tasks.py": {
        "task-end-fenced": (without(2), "test_two_replicas_that_take_a_task_get_it_once"),
        "task-lease-held": (
            value("(tasks.c.state == TaskState.WORKING.value,)"),
            "test_two_replicas_that_take_a_task_get_it_once",
        ),
        "task-lease-respected": (NEVER, "test_a_held_lease_is_not_taken_for_any_replica_clock"),
        "task-rounds-bounded": (NEVER, "test_answers_are_bounded_and_of_the_right_form"),
        "task-run-once": (ALWAYS, "test_after_an_intent_a_lapsed_task_fails_once_and_for_all"),
        "tasks-of-one-subject": (NEVER, "test_open_tasks_of_a_subject_are_bounded"),
        "tasks-stored": (NEVER, "test_stored_tasks_are_bounded"),
    },
    "tests/attacks/test_manifests.py": {
        "document-reads-bounded": (
            swap("slot_pool", "followers"),
            "test_a_slow_reader_of_a_document_holds_one_of_few_places",
        ),
        "manifest-object-bytes": (NEVER, "test_one_object_is_bounded_as_in_a_request_of_its_own"),
        "manifest-operators-objects": (NEVER, "test_sets_of_the_operator_are_apart"),
        "manifest-adoption-checked": (NEVER, "test_objects_of_the_operator_are_not_taken_over"),
        "manifest-operator-kinds": (NEVER, "test_kinds_of_the_operator_need_the_operator"),
    },
    "tests/behaviour/manifests/test_apply.py": {
        "manifest-veiled": (value("_describe(one, members)"), "test_secrets_of_a_body_are_shown_nowhere"),
    },
    "tests/behaviour/manifests/test_ownership.py": {
        "drift-events-bounded": (NEVER, "test_drift_of_many_objects_has_few_events"),
        "manifest-one-of-a-name": (NEVER, "test_a_client_is_matched_by_its_only_name"),
        "manifest-secrets-compared": (NEVER, "test_a_secret_is_written_when_it_changes"),
        "prune-not-empty": (NEVER, "test_pruning_removes_only_objects_of_the_set"),
    },
    "tests/unit/catalog/manifests/test_terms.py": {
        "apply-bounded-in-time": (swap("seconds", "None"), "test_an_application_ends_in_time"),
    },
    "tests/integration/catalog/test_manifest_bounds.py": {
        "manifest-result-bounded": (value("True"), "test_a_result_is_bounded"),
        "manifest-value-bounded": (NEVER, "test_a_result_is_bounded"),
        "manifest-secrets-compared-in-steps": (SKIP, "test_secrets_are_compared_in_steps"),
    },
    "tests/unit/admin/routes/test_manifests.py": {
        "manifest-validation-in-steps": (SKIP, "test_objects_are_validated_in_steps"),
    },
    "tests/integration/catalog/test_manifests.py": {
        "apply-reads-unlocked": (without(1), "test_reading_before_the_transaction_waits_for_no_row"),
        "manifest-reads-end": (
            becomes("refused.append(locate(error, place, wanted))\ncontinue"),
            "test_reading_ends_at_the_first_error",
        ),
        "apply-prepares-none-after-a-refusal": (
            NEVER,
            "test_few_checks_run_at_once_and_the_first_refusal_counts",
        ),
        "apply-prepares-few": (
            value("anyio.CapacityLimiter(1000)"),
            "test_few_checks_run_at_once_and_the_first_refusal_counts",
        ),
    },
    "tests/behaviour/guardrails/test_guardrails.py": {
        "guardrail-alias": (
            swap("each in checked", "each in checked[:1]"),
            "test_an_operation_under_another_name_is_checked",
        ),
        "guardrail-arguments": (NEVER, "test_arguments_with_a_secret_are_not_sent"),
        "guardrail-arguments-all": (NEVER, "test_resources_and_prompts_are_checked"),
        "guardrail-binary-arguments": (without(2), "test_arguments_that_pretend_to_be_pictures_are_read"),
        "guardrail-renamed": (value("[item]"), "test_a_renamed_tool_is_still_checked"),
        "guardrail-block-call": (NEVER, "test_arguments_with_a_secret_are_not_sent"),
        "guardrail-block-result": (NEVER, "test_a_result_with_a_secret_is_withheld"),
        "guardrail-contents": (NEVER, "test_resources_and_prompts_are_checked"),
        "guardrail-leftover": (
            swap("is_kept=is_kept", "is_kept=True"),
            "test_a_large_result_is_not_kept_around_the_guardrails",
        ),
        "guardrail-mark": (NEVER, "test_a_guardrail_that_could_not_work_is_refused"),
        "guardrail-messages": (NEVER, "test_resources_and_prompts_are_checked"),
        "guardrail-rebound": (value("is_alike"), "test_a_guardrail_counts_from_the_next_call_on"),
        "guardrail-recorded": (SKIP, "test_findings_are_recorded_and_counted"),
        "guardrail-results": (NEVER, "test_a_result_with_a_secret_is_withheld"),
        "guardrail-unchecked": (value("()"), "test_a_result_of_too_many_parts_is_a_finding"),
    },
    "tests/behaviour/guardrails/test_hooks.py": {
        "guardrail-fail-closed": (value("True"), "test_a_hook_without_a_valid_answer_fails_as_declared"),
        "guardrail-hook-evaded": (without(2), "test_a_result_too_large_for_a_hook_is_not_sent"),
        "guardrail-hook-origin": (without(2), "test_a_hook_is_signed_for_its_origin_alone"),
        "guardrail-hook-policy": (NEVER, "test_a_hook_that_the_policy_forbids_later_is_not_called"),
        "guardrail-hook-request-size": (NEVER, "test_a_result_too_large_for_a_hook_is_not_sent"),
        "guardrail-hook-status": (NEVER, "test_a_hook_without_a_valid_answer_fails_as_declared"),
        "guardrail-hook-time": (
            swap("hook.timeout_ms / 1000", "None"),
            "test_a_slow_hook_times_out_and_is_then_skipped",
        ),
    },
    "tests/unit/jobs/test_audit_files.py": {
        "sink-file-torn": (NEVER, "test_an_unfinished_line_costs_no_entry"),
    },
    "tests/unit/calls/guardrails/test_guardrail_patterns.py": {
        "guardrail-bounded-input": (value("True"), "test_a_result_that_cannot_be_read_is_refused_soon"),
        "guardrail-bounded-text": (NEVER, "test_texts_are_bounded"),
        "guardrail-wrapped-secrets": (NEVER, "test_a_disguise_that_costs_little_is_undone"),
        "guardrail-checksums": (ALWAYS, "test_harmless_texts_are_not_found"),
        "guardrail-gaps": (swap("shorten_gaps(text, undo)", "text"), "test_a_long_gap_hides_nothing"),
        "guardrail-linear-time": (
            swap("RegexOptions", "FancyRegexOptions"),
            "test_a_pattern_that_backtracks_does_not_compile",
        ),
    },
    "tests/unit/definitions/policy/test_conditions.py": {
        "pointer-unclear": (swap("Unclear", "ZeroDivisionError"), "test_a_pointer_names_one_place"),
        "resembling-names": (NEVER, "test_a_pointer_names_one_place"),
        "resembling-texts": (swap("None", "False"), "test_a_text_that_resembles_the_value_is_not_decidable"),
    },
    "tests/unit/definitions/policy/test_paths.py": {
        "path-readings": (swap("None", "True"), "test_a_path_that_readers_may_read_differently_is_not_decidable"),
        "path-unclear": (NEVER, "test_a_path_that_readers_may_read_differently_is_not_decidable"),
    },
    "tests/unit/definitions/policy/test_primitive_policy.py": {
        "policy-alias": (value("False"), "test_a_rule_about_an_operation_covers_its_tools"),
        "policy-doubt": (NEVER, "test_in_doubt_a_rule_that_protects_counts_and_one_that_relaxes_does_not"),
        "policy-uri-readings": (swap("None", "False"), "test_a_uri_of_a_template_is_matched_in_all_its_readings"),
    },
    "tests/unit/calls/test_policy_rules.py": {
        "policy-conditions": (NEVER, "test_a_denied_argument_reaches_no_handler"),
        "policy-of-the-uri": (ALWAYS, "test_resources_templates_and_prompts_obey_rules"),
    },
    "tests/unit/calls/test_recorded_arguments.py": {
        "recorded-arguments-bytes": (NEVER, "test_records_are_bounded"),
        "recorded-arguments-read": (NEVER, "test_records_are_bounded"),
        "recorded-credential-names": (NEVER, "test_known_forms_of_secrets_are_always_dropped"),
        "recorded-hash-of-the-tenant": (value("b''"), "test_hashes_compare_values_of_one_tenant"),
        "recorded-resembling-names": (value("False"), "test_resembling_names_are_dropped_too"),
        "recorded-bare-credentials": (NEVER, "test_known_forms_of_secrets_are_always_dropped"),
        "recorded-secrets": (value("False"), "test_known_forms_of_secrets_are_always_dropped"),
    },
    "tests/unit/catalog/snapshots/test_outlines_of_live_tools.py": {
        "live-outline-bytes": (value("0"), "test_one_tenants_views_leave_those_of_others"),
    },
    "tests/behaviour/admin/test_recorded_arguments.py": {
        "recorded-inner": (
            swap("_ARGUMENTS_OF_OPERATIONS", "()"),
            "test_no_other_entry_has_the_arguments_of_an_operation",
        ),
    },
    "tests/unit/registry/test_policy_profiles.py": {
        "policy-profile": (value("self._bound"), "test_a_rule_for_a_profile_is_for_that_profile_only"),
    },
    "tests/behaviour/admin/test_policy_rules.py": {
        "policy-renamed": (value("names"), "test_a_rule_follows_a_tool_that_is_renamed"),
        "new-tenants-protected": (SKIP, "test_a_new_tenant_is_protected_and_an_older_one_is_not_changed"),
    },
    "tests/attacks/test_providers.py": {
        "agent-call-deadline": (swap("CALL_S", "None"), "test_a_call_without_a_result_ends"),
        "agent-definitions-size": (NEVER, "test_definitions_are_counted_and_measured"),
        "agent-notice-bounded": (without(2), "test_progress_and_logs_are_measured"),
        "agent-primitives": (NEVER, "test_definitions_are_counted_and_measured"),
        "agent-progress-bounded": (ALWAYS, "test_progress_that_is_not_taken_is_dropped"),
        "agent-questions-bounded": (NEVER, "test_questions_of_one_call_are_bounded"),
        "agent-uri-bounded": (without(2), "test_uris_of_updates_are_measured"),
        "agent-values": (SKIP, "test_a_message_that_is_no_message_ends_its_own_connection"),
        "provide-connections": (NEVER, "test_connections_of_a_tenant_are_bounded"),
        "provide-handshakes": (NEVER, "test_many_handshakes_in_a_short_time_are_refused"),
        "upgrade-of-one-url": (value("super()._should_upgrade()"), "test_an_upgrade_elsewhere_is_ignored"),
        "websocket-early-frames": (SKIP, "test_frames_before_the_handshake_has_ended_cut_the_connection"),
        "websocket-edge": (NEVER, "test_a_bad_handshake_is_answered"),
        "websocket-frame-flood": (NEVER, "test_a_hostile_frame_ends_its_own_connection"),
        "websocket-plain": (SKIP, "test_a_hostile_frame_ends_its_own_connection"),
        "websocket-unread-pongs": (NEVER, "test_unread_pongs_are_bounded"),
    },
    "tests/behaviour/protocol/test_approvals.py": {
        "approval-catalog-of-each-run": (
            value("None"),
            "test_a_change_that_a_replica_has_not_learned_stops_the_run",
        ),
        "approval-claimed": (NEVER, "test_a_change_that_a_replica_has_not_learned_stops_the_run"),
        "approval-of-this-policy": (value("False"), "test_no_approval_is_given_in_vain"),
        "approval-key-calls": (without(2), "test_a_key_that_approves_tries_nothing_that_needs_it"),
        "approval-not-retried": (
            swap("idempotent=False", "idempotent=True"),
            "test_an_approved_request_is_not_sent_again",
        ),
        "approval-same-rules": (value("True"), "test_a_catalog_that_moved_while_a_call_waited_is_read_again"),
        "approval-rounds-same": (NEVER, "test_a_tool_that_changes_between_rounds_ends_the_call"),
        "approval-wait-holds-no-slot": (
            becomes("return await self._follow(call, approval, timeout_s)"),
            "test_a_waiting_call_holds_no_slot",
        ),
    },
    "tests/integration/catalog/test_approvals.py": {
        "approval-audited": (SKIP, "test_a_decision_without_its_entry_is_not_made"),
        "approval-by-another-subject": (NEVER, "test_a_decision_is_another_subjects"),
        "approval-by-another-subject-stored": (SKIP, "test_the_database_refuses_a_decision_of_the_requester"),
        "approval-catalog-current": (NEVER, "test_a_call_that_waited_runs_only_in_the_catalog_it_was_prepared_in"),
        "approval-credentials-current": (SKIP, "test_another_credential_at_the_last_moment_stops_the_run"),
        "approval-exact": (
            value("(self.principal.subject, self.tool)"),
            "test_equal_calls_of_a_subject_share_one_approval",
        ),
        "approval-expires": (SKIP, "test_time_runs_out_before_and_after_the_decision"),
        "approval-intent-first": (SKIP, "test_a_decision_without_its_entry_is_not_made"),
        "approval-key-valid": (NEVER, "test_a_revoked_key_runs_nothing"),
        "approval-person-denied": (NEVER, "test_a_denied_person_runs_nothing"),
        "approval-lease": (value("is_running"), "test_a_run_whose_lease_is_past_is_unknown_for_good"),
        "approval-subject-spelling": (value("subject"), "test_another_spelling_is_no_other_person"),
        "approval-once": (SKIP, "test_of_many_callers_one_runs_the_call"),
        "approval-parked": (swap("_parked(earlier)", "earlier"), "test_a_renewed_lease_holds"),
        "approval-scope": (NEVER, "test_a_decision_is_another_subjects"),
        "approval-sealed": (
            swap("sealer.seal(tenant, wrapped, shown, *bound)", "shown"),
            "test_the_request_of_an_approval_is_sealed",
        ),
        "approval-superseded": (value("True"), "test_a_changed_tool_or_policy_needs_a_new_approval"),
        "approval-waits-capped": (without(2), "test_a_replica_lets_only_so_many_calls_wait"),
        "approvals-capped": (NEVER, "test_open_approvals_are_bounded"),
        "approvals-capped-by-subject": (NEVER, "test_open_approvals_are_bounded"),
    },
    "tests/unit/calls/test_risk_warnings.py": {
        "approval-shows-its-gaps": (NEVER, "test_omitted_parts_are_reported"),
    },
    "tests/unit/calls/test_approval_digests.py": {
        "approval-covers-the-request": (
            swap("(prepared.digest, parts)", "prepared.digest"),
            "test_any_other_request_has_another_digest",
        ),
    },
    "tests/behaviour/live/test_providers.py": {
        "agent-source-owner": (NEVER, "test_a_source_belongs_to_a_subject_on_all_replicas"),
    },
    "tests/integration/providers/test_endpoint.py": {
        "agent-question-ends": (SKIP, "test_the_end_of_a_call_waits_for_no_answer"),
        "agent-question-time": (SKIP, "test_the_time_of_a_question_is_not_the_calls"),
        "agent-resume": (value("is_known"), "test_the_same_subject_takes_over_and_another_cannot"),
        "provide-ended": (NEVER, "test_a_hello_fails_when_its_attachment_is_not_served"),
        "provide-key-ended": (NEVER, "test_a_revoked_key_closes_its_connections_at_once"),
        "provide-key-rechecked": (NEVER, "test_a_key_that_ended_unnoticed_is_found"),
        "provide-owner": (
            value("attached is not None"),
            "test_a_resume_token_of_another_subject_or_source_resumes_nothing",
        ),
        "provide-scope": (NEVER, "test_admission_follows_the_rules_of_mcp_urls"),
        "provide-tenant-of-the-path": (without(3), "test_admission_follows_the_rules_of_mcp_urls"),
    },
    "tests/unit/jobs/live/test_agent_sources.py": {
        "agent-checks-rest": (ALWAYS, "test_a_tenant_with_costly_definitions_rests"),
    },
    "tests/integration/jobs/live/test_attachments.py": {
        "live-origin-attached": (NEVER, "test_an_origin_that_the_policy_no_longer_allows_is_detached"),
        "live-update-of-its-own": (ALWAYS, "test_updates_of_own_resources_are_published_and_others_are_not"),
    },
    "tests/unit/jobs/live/test_held.py": {
        "live-discovery-rest": (becomes("rest_until = 0.0"), "test_a_costly_source_rests_between_discoveries"),
    },
    "tests/integration/redis/live/test_forwarding.py": {
        "inbox-mac": (ALWAYS, "test_messages_of_others_change_nothing"),
    },
    "tests/unit/handlers/previews/test_requests.py": {
        "preview-invisible-letters": (
            swap(" and ESCAPED.match(character) is None", ""),
            "test_a_body_is_shown_as_it_is_sent",
        ),
    },
    "tests/unit/handlers/test_live_source.py": {
        "live-session-owner": (value("SessionOwner('', '')"), "test_a_request_is_in_the_session_of_its_caller"),
        "live-meta": (value("dict(meta)"), "test_a_source_cannot_speak_for_the_gateway"),
    },
    "tests/attacks/outbound/test_outbound_egress.py": {
        "egress-at-the-dial": (NEVER, "test_no_spelling_reaches_an_inner_address"),
    },
    "tests/attacks/outbound/test_outbound_permissions.py": {
        "egress-exact-port": (
            swap("named in permitted", "named[0] in {name for name, _ in permitted}"),
            "test_another_port_is_another_upstream",
        ),
        "egress-exact-port-of-an-address": (
            swap("(parsed, port) in permitted", "parsed in {host for host, _ in permitted}"),
            "test_another_port_is_another_upstream",
        ),
        "egress-withdrawn-connections": (
            becomes(
                "permitted: AllowList = NOTHING\n"
                "__eq__ = lambda one, other: tuple(one)[:3] == tuple(other)[:3]\n"
                "__hash__ = lambda one: hash(tuple(one)[:3])"
            ),
            "test_a_withdrawn_permission_ends_kept_connections",
        ),
    },
    "tests/attacks/outbound/test_outbound_streams.py": {
        "egress-listed-streams": (NEVER, "test_a_host_is_reached_where_an_entry_names_it"),
        "egress-socket-path": (NEVER, "test_no_link_leads_to_another_socket"),
    },
    "tests/attacks/test_admin_floods.py": {
        "admin-cost-of-chunks": (NEVER, "test_a_body_without_a_length_counts_before_it_is_parsed"),
    },
    "tests/attacks/test_admin_isolation.py": {
        "admin-operator-only": (NEVER, "test_tenants_are_the_operators"),
        "admin-operator-only-of-a-tenant": (
            becomes("return _Admitted(caller.tenant, caller)"),
            "test_tenants_are_the_operators",
        ),
        "cursor-of-its-tenant": (
            swap("tenant, profile", "profile"),
            "test_a_cursor_of_one_tenant_opens_no_list_of_another",
        ),
        "egress-operator-only": (swap("writers=OPERATOR, ", ""), "test_tenants_are_the_operators"),
        "tenants-of-the-operator": (SKIP, "test_tenants_are_the_operators"),
    },
    "tests/attacks/test_argument_budget.py": {
        "explain-copies": (ALWAYS, "test_a_refusal_takes_little_memory_for_every_schema"),
        "meter-exhausted": (NEVER, "test_a_check_ends_soon_after_its_last_unit"),
        "meter-unevaluated": (SKIP, "test_every_factor_of_the_work_is_counted"),
        "explain-copies-per-name": (NEVER, "test_a_refusal_takes_little_memory_for_every_schema"),
        "explain-size": (value("True"), "test_violations_are_collected_of_small_values_only"),
    },
    "tests/attacks/test_coerced_arguments.py": {
        "coercion-recorded": (NEVER, "test_the_trail_records_the_value_and_the_digest_of_the_sent_arguments"),
        "coercion-strict-json": (
            value('__import__("json").loads(raw)'),
            "test_two_readings_of_one_text_are_refused",
        ),
    },
    "tests/attacks/test_argument_budget_served.py": {
        "merged-arguments-validated": (NEVER, "test_merged_arguments_are_checked_within_the_same_bounds"),
        "body-values": (SKIP, "test_a_body_of_very_many_values_is_refused_before_it_is_read"),
    },
    "tests/attacks/test_audit_exports.py": {
        "tail-ends": (NEVER, "test_a_followed_trail_ends_although_it_grows"),
        "tail-ends-in-the-past": (NEVER, "test_a_slow_reader_of_the_past_is_not_read_to_for_longer"),
        "export-key-of-the-tenant": (swap(" of {tenant}", ""), "test_an_export_under_another_key_is_refused"),
        "export-entries-authentic": (SKIP, "test_an_edit_before_the_export_is_named_by_the_export"),
        "verifier-tenant": (NEVER, "test_an_export_under_another_key_is_refused"),
        "verifier-seal": (SKIP, "test_an_edit_of_an_export_is_found"),
        "verifier-seal-form": (NEVER, "test_an_edit_of_an_export_is_found"),
        "verifier-end": (NEVER, "test_an_edit_of_an_export_is_found"),
        "verifier-own-lines": (NEVER, "test_sealed_lines_that_contradict_each_other_are_found"),
        "verifier-gaps": (NEVER, "test_sealed_lines_that_contradict_each_other_are_found"),
        "verifier-signed-entries": (NEVER, "test_sealed_lines_that_contradict_each_other_are_found"),
        "verifier-unique-members": (NEVER, "test_sealed_members_of_one_name_are_refused"),
        "verifier-earlier": (NEVER, "test_a_holder_of_the_keys_is_contradicted_by_an_earlier_export"),
        "verifier-heads": (NEVER, "test_a_holder_of_the_keys_is_contradicted_by_a_head_elsewhere"),
    },
    "tests/attacks/test_audit_cuts.py": {
        "cut-continues": (NEVER, "test_an_edit_of_a_cut_is_found"),
        "cut-has-an-entry": (NEVER, "test_a_signed_record_without_its_entry_is_found"),
        "cut-keeps-the-last-change": (
            swap("self.last_change - 1", "self.last_change"),
            "test_the_last_change_stays",
        ),
        "cut-keeps-the-retention": (NEVER, "test_a_cut_trail_is_whole"),
        "cut-records-complete": (NEVER, "test_a_signed_record_of_another_change_is_found"),
        "cut-signed": (NEVER, "test_an_edit_of_a_cut_is_found"),
        "cut-verifies": (value("True"), "test_a_chain_with_a_fault_keeps_everything"),
        "cut-waits-for-sinks": (
            swap("*(place.get(writer, 0) for place in self.places.values())", ""),
            "test_a_sink_that_is_behind_holds_the_cut",
        ),
        "retention-minimum": (NEVER, "test_no_retention_is_shorter_than_the_operators"),
        "retention-minimum-of-cuts": (
            swap("max(stored.days, catalog.options.retention_min_days)", "stored.days"),
            "test_no_retention_is_shorter_than_the_operators",
        ),
        "verifier-cut-continues": (NEVER, "test_sealed_cuts_that_contradict_the_trail_are_found"),
        "verifier-cut-earlier-entries": (SKIP, "test_a_holder_of_the_keys_is_contradicted_by_an_earlier_export"),
        "verifier-cut-has-an-entry": (SKIP, "test_sealed_cuts_that_contradict_the_trail_are_found"),
        "verifier-cut-records": (NEVER, "test_sealed_cuts_that_contradict_the_trail_are_found"),
        "verifier-cut-signature": (SKIP, "test_sealed_cuts_that_contradict_the_trail_are_found"),
        "verifier-cut-signed-entries": (NEVER, "test_sealed_cuts_that_contradict_the_trail_are_found"),
        "verifier-earlier-cuts": (NEVER, "test_a_holder_of_the_keys_is_contradicted_by_an_earlier_export"),
    },
    "tests/attacks/test_audit_heads_outside.py": {
        "audit-signed-from-memory": (
            swap(", self._chains.end_of(tenant)", ""),
            "test_calls_deleted_before_they_were_signed_are_missed",
        ),
        "audit-signer-remembers": (ALWAYS, "test_a_running_signer_misses_signatures_that_were_put_back"),
        "audit-signer-recalls": (
            swap("await self._outside.recall(tenant)", "None"),
            "test_an_older_state_is_found_by_each_store_alone",
        ),
        "audit-heads-compared": (NEVER, "test_an_older_state_is_found_by_each_store_alone"),
        "audit-heads-sealed": (NEVER, "test_a_writer_of_redis_forges_no_head"),
        "audit-heads-of-their-tenant": (swap("tenant", "found.tenant"), "test_a_writer_of_redis_forges_no_head"),
    },
    "tests/attacks/test_audit_refusals.py": {
        "refused-calls-counted": (NEVER, "test_refused_requests_are_counted_in_their_tenants_trail"),
    },
    "tests/attacks/test_audit_trail_writers.py": {
        "audit-has-a-beginning": (swap(", 1", ""), "test_removed_entries_are_found"),
        "revision-of-the-tenant": (swap("found is None", "not found"), "test_removed_entries_are_found"),
        "audit-break-is-reported": (SKIP, "test_a_change_without_a_predecessor_records_a_break"),
        "audit-anchor-seal": (NEVER, "test_removed_entries_are_found"),
        "audit-anchor-length": (NEVER, "test_removed_entries_are_found"),
        "audit-anchor-missing": (NEVER, "test_removed_entries_are_found"),
        "audit-changes-name-signatures": (NEVER, "test_removed_entries_are_found"),
        "audit-every-signature-counts": (NEVER, "test_removed_entries_are_found"),
        "audit-break": (NEVER, "test_a_change_without_a_predecessor_records_a_break"),
    },
    "tests/attacks/test_hostile_editors.py": {
        "neovim-unwanted-messages": (NEVER, "test_an_editor_that_breaks_the_protocol_is_detached"),
        "neovim-reply-size": (NEVER, "test_a_reply_that_is_no_result_costs_its_call"),
    },
    "tests/integration/upstream/live/neovim/test_editor_tools.py": {
        "neovim-exact-integers": (NEVER, "test_arguments_arrive_as_they_were_sent"),
        "neovim-withdrawn": (SKIP, "test_a_withdrawn_permission_ends_the_attachment"),
        "neovim-running": (NEVER, "test_calls_beyond_the_limit_of_an_attachment_are_refused"),
    },
    "tests/attacks/test_credentials_in_answers.py": {
        "redaction-of-headers": (SKIP, "test_no_header_shows_a_credential"),
        "redaction-of-charsets": (NEVER, "test_secrets_are_found_in_the_charset_of_the_text"),
        "redaction-is-bounded": (NEVER, "test_an_answer_that_is_nothing_but_credentials_is_replaced_whole"),
        "redaction-of-parts": (
            swap("chain.from_iterable(map(parts_of, credentials))", "credentials"),
            "test_no_encoding_of_a_part_of_a_credential_is_shown",
        ),
        "redaction-of-base64": (swap("offsets", "1"), "test_no_encoding_of_a_credential_is_shown"),
        "token-endpoint-errors": (ALWAYS, "test_a_token_endpoint_cannot_have_its_error_shown"),
    },
    "tests/attacks/test_declared_levels.py": {
        "alias-level": (value("declared"), "test_an_alias_declared_safe_is_judged_as_its_operation"),
        "counted-level": (swap("level", "safety"), "test_an_alias_declared_safe_is_judged_as_its_operation"),
    },
    "tests/attacks/test_edge_bodies.py": {
        "body-limit-declared": (NEVER, "test_a_declared_length_above_the_limit_is_not_awaited"),
    },
    "tests/attacks/test_edge_redis.py": {
        "log-signature": (value("True"), "test_forged_messages_reach_no_client"),
        "log-signature-of-the-stream": (
            value("mac.update(kind)"),
            "test_messages_for_another_stream_reach_no_client",
        ),
    },
    "tests/attacks/test_edge_requests.py": {
        "host": (NEVER, "test_a_foreign_host_is_refused_on_every_face"),
        "origin": (NEVER, "test_a_foreign_origin_is_refused_on_every_face"),
        "repeated-headers": (NEVER, "test_two_origins_are_no_origin"),
        "headers-limit": (NEVER, "test_too_many_or_too_long_headers_are_refused"),
        "url-limit": (NEVER, "test_a_long_url_is_refused"),
    },
    "tests/attacks/test_egress_permissions.py": {
        "egress-own-list": (
            value("frozenset().union(*(e.snapshot.egress for e in self.snapshots._entries.values() if e.snapshot))"),
            "test_no_path_leads_to_the_upstream_of_another_tenant",
        ),
    },
    "tests/attacks/test_fair_pools.py": {
        "share-of-postgresql": (
            swap("party", "None"),
            "test_one_tenant_holds_a_quarter_of_the_connections_to_postgresql",
        ),
        "signing-outside-the-share": (
            swap("upkeep", "transaction"),
            "test_a_tenant_at_its_share_does_not_delay_the_signing_of_others",
        ),
        "share-of-lookups": (value("host"), "test_names_below_one_domain_hold_a_quarter_of_the_lookups"),
    },
    "tests/attacks/test_guarded_places.py": {
        "key-same-work": (
            value("secrets"),
            "test_an_unknown_key_costs_the_comparisons_of_a_known_one",
        ),
        "statement-timeout": (
            swap('statement_timeout": "10000", "', ""),
            "test_every_connection_of_the_app_has_deadlines",
        ),
        "credential-echo-encoded": (value("text"), "test_a_credential_that_is_echoed_encoded_is_blanked"),
        "path-joined": (NEVER, "test_a_value_that_completes_a_dot_segment_of_the_document_is_refused"),
        "answer-limit-counted": (
            swap("call.limit", "2 * call.limit"),
            "test_an_answer_without_a_length_is_cut_at_the_limit",
        ),
        "pattern-engine": (SKIP, "test_a_pattern_that_needs_backtracking_does_not_compile"),
        "schema-offline": (SKIP, "test_a_schema_is_never_fetched"),
    },
    "tests/attacks/test_key_scopes.py": {
        "key-scope-granted": (SKIP, "test_a_key_grants_no_scope_that_it_lacks"),
        "key-scope-rotated": (SKIP, "test_a_key_grants_no_scope_that_it_lacks"),
        "key-scope-operators": (NEVER, "test_a_key_grants_no_scope_that_it_lacks"),
    },
    "tests/integration/store/test_resealing.py": {
        "data-key-in-use": (
            swap(".with_for_update(skip_locked=True)", ""),
            "test_a_data_key_stays_while_a_writer_is_about_to_use_it",
        ),
        "rotation-lease-held": (value("()"), "test_a_holder_that_lost_its_lease_changes_nothing"),
    },
    "tests/behaviour/admin/test_secret_rotation.py": {
        "secret-key-wrong": (NEVER, "test_a_replica_with_the_wrong_keys_does_not_start"),
        "secret-key-missing": (SKIP, "test_a_replica_with_the_wrong_keys_does_not_start"),
        "secret-key-wrong-adopted": (NEVER, "test_an_installation_of_an_earlier_release_is_adopted_with_its_keys"),
        "secret-key-forgotten-in-use": (NEVER, "test_the_command_rotates_shows_and_gives_up"),
        "rotation-every-replica": (NEVER, "test_a_rotation_waits_until_every_replica_has_the_key"),
        "rotation-one-sealer": (NEVER, "test_a_rotation_waits_until_every_replica_has_the_key"),
    },
    "tests/unit/telemetry/test_line_writer.py": {
        "no-log-thread-at-exit": (NEVER, "test_a_line_at_the_end_of_the_interpreter_ends_the_process"),
    },
    "tests/unit/upstream/test_secret_files.py": {
        "reference-file-inside": (NEVER, "test_a_link_to_the_outside_is_refused_before_it_is_opened"),
        "reference-file-replaced": (NEVER, "test_a_folder_that_is_replaced_while_it_is_read_leads_nowhere"),
    },
    "tests/behaviour/admin/test_secret_references.py": {
        "reference-path-form": (without(2), "test_a_file_is_read_at_each_use_and_only_the_tenants_own"),
        "reference-of-the-author": (NEVER, "test_a_variable_is_the_operators_alone"),
        "vault-tls": (value("True"), "test_an_unsafe_or_incomplete_vault_url_is_refused_without_its_secret"),
        "reference-variable-operator": (NEVER, "test_a_variable_is_the_operators_alone"),
        "reference-of-the-tenant": (
            swap("slug, reference.path", "'globex', reference.path"),
            "test_vault_is_read_at_each_use_and_fails_closed",
        ),
    },
    "tests/behaviour/admin/test_leaked_keys.py": {
        "leaked-key-proved": (
            swap("found.match is KeyMatch.OTHER", "False"),
            "test_a_found_key_is_named_and_revoked",
        ),
    },
    "tests/behaviour/admin/test_admin_contract.py": {
        "account-public-url": (NEVER, "test_every_route_answers_as_documented"),
        "key-two-secrets": (SKIP, "test_every_route_answers_as_documented"),
    },
    "tests/attacks/test_limit_ceilings.py": {
        "price-of-initialize": (NEVER, "test_a_handshake_is_charged_as_several_requests"),
        "pace-of-requests": (NEVER, "test_a_flood_of_requests_without_a_limit_is_paced"),
        "limits-above-refused": (NEVER, "test_the_refused_change_stores_nothing"),
        "ceilings-raised-by-the-operator": (NEVER, "test_the_refused_change_stores_nothing"),
        "ceilings-of-the-operator": (
            swap("writers=OPERATOR, ", ""),
            "test_a_tenant_admin_reads_its_ceilings_and_cannot_set_them",
        ),
    },
    "tests/attacks/test_method_overrides.py": {
        "method-override-headers": (without(2), "test_a_stored_handler_of_before_does_not_send_one"),
        "method-override-fields": (ALWAYS, "test_a_method_in_a_field_counts"),
        "method-override-filled-names": (value("name == METHOD_FIELD"), "test_a_method_in_a_field_counts"),
        "method-override-form-text": (NEVER, "test_a_method_in_a_field_counts"),
    },
    "tests/attacks/test_redis_writers.py": {
        "session-record-seal": (value("True"), "test_nothing_sealed_is_believed_from_another_hand_or_place"),
        "seal-of-the-place": (swap("parts", "parts[1:]"), "test_nothing_sealed_is_believed_from_another_hand_or_place"),
        "answer-seal": (NEVER, "test_nothing_sealed_is_believed_from_another_hand_or_place"),
        "kept-result-seal": (NEVER, "test_nothing_sealed_is_believed_from_another_hand_or_place"),
        "unsealed-for-a-while": (value("True"), "test_state_of_the_release_before_is_believed_for_a_while_only"),
        "subscribers-are-sessions": (ALWAYS, "test_planted_subscribers_reach_no_other_place"),
    },
    "tests/attacks/test_sessions_sockets.py": {
        "header-deadline": (value("None"), "test_dripping_does_not_buy_time"),
        "lingering-end": (value("None"), "test_a_refused_body_that_drips_does_not_buy_time"),
    },
    "tests/attacks/test_upstream_smuggling.py": {
        "unread-body": (NEVER, "test_an_unread_body_meets_no_other_request"),
        "connection-of-one-tenant": (swap("tenant", '""'), "test_two_credentials_of_one_tenant_share_no_connection"),
        "connection-of-one-credential": (
            swap("request.credential", 'b""'),
            "test_two_credentials_of_one_tenant_share_no_connection",
        ),
    },
    "tests/behaviour/admin/test_audit_sinks.py": {
        "sink-file-operator": (NEVER, "test_a_file_is_the_operators"),
        "sink-file-name": (SKIP, "test_a_file_is_the_operators"),
    },
    "tests/behaviour/admin/test_admin_http.py": {
        "admin-media-type": (NEVER, "test_a_body_must_declare_json"),
    },
    "tests/behaviour/admin/test_idempotency.py": {
        "idempotency-of-the-principal": (
            swap("caller.name.encode(), request.", ""),
            "test_a_new_keys_text_is_repeated_for_its_author_alone",
        ),
        "idempotency-of-the-request": (NEVER, "test_a_key_belongs_to_one_request"),
    },
    "tests/behaviour/admin/test_lists.py": {
        "cursor-of-its-search": (NEVER, "test_a_list_is_searched_and_ordered_in_complete_parts"),
    },
    "tests/behaviour/openapi/test_documents_of_files.py": {
        "reference-host": (NEVER, "test_files_beside_a_document_are_fetched_from_allowed_hosts_only"),
    },
    "tests/unit/upstream/test_shown_headers.py": {
        "redirect-target-hidden": (SKIP, "test_the_target_of_a_redirect_is_not_shown"),
        "shown-header-user": (value("printable"), "test_urls_have_no_user_and_values_no_control_characters"),
    },
    "tests/unit/calls/test_field_selection.py": {
        "fields-bounded": (NEVER, "test_other_forms_are_refused_with_their_place"),
    },
    "tests/behaviour/openapi/test_responses.py": {
        "fields-of-the-profile": (NEVER, "test_a_profile_gives_tools_fields_to_select"),
        "own-fields-argument": (value("True"), "test_an_argument_of_this_name_in_a_document_stays_its_own"),
    },
    "tests/behaviour/openapi/test_large_results.py": {
        "result-guardrails": (value('""'), "test_a_new_guardrail_ends_results"),
        "result-scope": (value('""'), "test_a_result_is_its_callers_alone"),
        "summary-for-clients": (swap(" or not self.reaches_client", ""), "test_handlers_read_whole_results"),
        "summary-without-output-schema": (NEVER, "test_an_output_schema_holds_for_the_whole"),
        "access-results": (SKIP, "test_a_profile_lists_the_tool_that_reads_parts"),
    },
    "tests/unit/calls/test_result_summary.py": {
        "summary-of-successes": (NEVER, "test_small_results_and_errors_stay"),
        "stored-per-result": (ALWAYS, "test_the_documents_of_one_result_leave_room_for_one_another"),
    },
    "tests/unit/calls/test_result_rendering.py": {
        "start-that-is-json": (NEVER, "test_broken_json_is_text_at_any_size"),
    },
    "tests/unit/calls/test_output_checks.py": {
        "text-with-schema-cut": (value("is_whole"), "test_a_text_is_not_whole_beside_an_output_schema"),
        "unstructured-result-cut": (NEVER, "test_a_violation_has_the_start_of_a_large_text"),
    },
    "tests/unit/openapi/operation/test_example_checks.py": {
        "linked-defaults-bounded": (NEVER, "test_defaults_beside_references_are_checked_to_a_limit"),
    },
    "tests/unit/openapi/schema/test_value_checks.py": {
        "default-checks-bounded": (without(2), "test_a_document_of_nothing_but_defaults_is_checked_to_a_limit"),
    },
    "tests/unit/handlers/test_result_reader.py": {
        "result-reads-bounded": (SKIP, "test_few_results_are_in_memory_at_a_time"),
        "whole-result-size": (NEVER, "test_a_whole_result_that_is_too_large_as_json_is_refused_early"),
    },
    "tests/unit/definitions/large_results/test_pages.py": {
        "result-conditions-bounded": (
            swap("page.offset >=", "page.offset >= 1e9 *"),
            "test_conditions_of_one_read_are_bounded",
        ),
        "result-conditions-work": (NEVER, "test_deep_conditions_of_one_read_are_bounded"),
        "result-pointer-bounded": (NEVER, "test_a_pointer_may_not_read_the_document_endlessly"),
    },
    "tests/integration/redis/caches/test_result_overflow.py": {
        "results-leave-memory": (NEVER, "test_results_leave_memory_for_the_rest"),
        "small-results-charged": (value("len(body)"), "test_small_results_are_limited_in_number"),
    },
    "tests/unit/calls/test_structured_once.py": {
        "once-structured": (NEVER, "test_small_results_and_lists_of_older_revisions_stay"),
        "once-repeated": (NEVER, "test_other_texts_stay"),
    },
    "tests/unit/calls/test_upstream_head.py": {
        "shown-headers-bounded": (swap("[: min(MAX_HEADER_LENGTH, room)]", ""), "test_long_headers_are_cut"),
    },
    "tests/behaviour/openapi/test_query_tools.py": {
        "found-tools-listed": (
            swap("_listed_tools(listed,", "_listed_tools(snapshot.tools,"),
            "test_own_tools_are_found_and_called_beside_an_exposed_api",
        ),
        "asked-queries-chosen": (
            swap(" if selection(tool)", ""),
            "test_a_profile_that_names_the_search_finds_its_listed_tools",
        ),
    },
    "tests/unit/openapi/query/test_search.py": {
        "near-words-few": (swap("self._comparisons_left", "None"), "test_a_question_computes_few_edit_distances"),
        "near-words-short": (NEVER, "test_long_words_are_not_compared"),
        "search-words": (swap("[:MAX_WORDS]", ""), "test_a_long_question_looks_up_its_rarest_words"),
    },
    "tests/behaviour/openapi/test_shortened_tools.py": {
        "validated-in-full": (ALWAYS, "test_calls_are_validated_against_the_full_schema"),
        "pinned-argument-validated": (
            swap("_encode(_without(decode_json(schema), names))", "schema"),
            "test_a_pinned_argument_is_neither_listed_nor_validated_in_a_shortened_tool",
        ),
        "details-of-listed-tools": (NEVER, "test_the_details_of_a_shortened_tool_are_its_full_input"),
        "listed-source-queried": (NEVER, "test_other_query_tools_do_not_show_listed_operations"),
        "list-page-bytes": (
            swap("max(1, sum(size <= self._limits.size for size in sizes))", ""),
            "test_pages_end_by_bytes",
        ),
    },
    "tests/behaviour/openapi/test_overrides.py": {
        "pinned-argument": (
            swap(", **self._pinned", ""),
            "test_a_pinned_argument_is_sent_and_not_accepted_from_callers",
        ),
        "pinned-argument-listed": (NEVER, "test_a_pinned_argument_is_sent_and_not_accepted_from_callers"),
        "hidden-tool": (without(2), "test_a_hidden_tool_is_for_handlers_only"),
        "renamed-name-free": (SKIP, "test_the_present_owner_of_a_name_precedes_the_former"),
    },
    "tests/integration/catalog/test_override_checks.py": {
        "override-of-validated-tool": (NEVER, "test_a_change_fits_the_document_under_which_it_is_stored"),
    },
    "tests/behaviour/primitives/test_profiles.py": {
        "mcp-profile-of-the-path": (NEVER, "test_keys_and_profiles"),
        "session-profile": (
            value("record.subject == context.principal.subject"),
            "test_a_session_belongs_to_the_profile_it_was_opened_at",
        ),
    },
    "tests/behaviour/protocol/test_calls.py": {
        "credential-echo": (value("response"), "test_stored_credentials_go_out_and_callers_never_do"),
    },
    "tests/behaviour/protocol/test_edge.py": {
        "mcp-tenant-of-the-path": (without(2), "test_a_foreign_tenant_and_a_missing_one_look_alike"),
        "mcp-scope": (NEVER, "test_a_key_without_the_scope_is_forbidden"),
        "no-batches": (ALWAYS, "test_malformed_messages_are_errors_of_the_protocol"),
        "mcp-media-type": (NEVER, "test_another_content_type_is_refused"),
    },
    "tests/behaviour/protocol/test_listen.py": {
        "listen-limit": (NEVER, "test_streams_are_limited_per_tenant"),
    },
    "tests/behaviour/protocol/test_mirrored_arguments.py": {
        "mirrored-argument": (ALWAYS, "test_headers_that_differ_are_refused"),
        "mirrored-characters": (NEVER, "test_bytes_that_are_no_characters_are_refused"),
        "routing-header-once": (NEVER, "test_routing_members_occur_once"),
    },
    "tests/behaviour/protocol/test_pages.py": {
        "cors-named-origins": (NEVER, "test_other_pages_get_no_permission"),
    },
    "tests/behaviour/protocol/test_plain.py": {
        "plain-mirrored": (without(2), "test_headers_that_disagree_with_a_plain_body_are_refused"),
    },
    "tests/behaviour/protocol/test_sessions.py": {
        "session-owner": (value("True"), "test_another_keys_session_is_unknown"),
        "session-adoption": (
            becomes(
                "found = await self._stores.sessions.find(context.principal.tenant, "
                'named.decode("latin-1"))\n'
                "record = found or SessionRecord(\n"
                '    id=named.decode("latin-1"),\n'
                "    tenant=context.principal.tenant,\n"
                "    subject=context.principal.subject,\n"
                "    profile=context.registry.profile,\n"
                '    protocol_version="2025-11-25",\n'
                "    client={},\n"
                ")"
            ),
            "test_a_session_id_of_the_clients_own_is_never_adopted",
        ),
    },
    "tests/behaviour/protocol/test_wire_refusals.py": {
        "mcp-one-version": (NEVER, "test_version_headers_that_differ_are_refused"),
        "mcp-uncompressed-body": (NEVER, "test_a_compressed_body_is_refused"),
    },
    "tests/behaviour/serving/test_admin_listener.py": {
        "admin-door-keys": (swap(", self.admin_address", ","), "test_a_public_admin_address_needs_keys_of_its_own"),
        "admin-door-half": (NEVER, "test_half_a_configuration_of_the_listener_is_refused"),
        "admin-door-apart": (swap("hooks", "*closed, hooks"), "test_the_admin_api_answers_on_its_own_listener_alone"),
    },
    "tests/behaviour/sessions/test_approvals.py": {
        "approval-superseded-at-once": (NEVER, "test_an_activation_ends_the_approvals_of_tools_that_it_changes"),
    },
    "tests/behaviour/sessions/test_elicitation.py": {
        "form-content-of-sessions": (SKIP, "test_content_that_does_not_match_the_form_ends_the_call"),
        "form-content-of-rounds": (SKIP, "test_content_that_does_not_match_the_form_ends_the_call"),
    },
    "tests/behaviour/sessions/test_modern.py": {
        "state-once": (NEVER, "test_a_state_is_good_once"),
        "state-principal": (
            swap("principal.subject}\\n{", ""),
            "test_a_state_belongs_to_its_principal_its_tool_and_its_arguments",
        ),
        "listened-still-readable": (ALWAYS, "test_a_listener_gets_no_update_of_an_unreadable_resource"),
    },
    "tests/behaviour/sessions/test_pings.py": {
        "ping-unanswered": (value("False"), "test_a_client_without_pongs_loses_the_stream_and_not_the_session"),
    },
    "tests/behaviour/sessions/test_subscriptions.py": {
        "subscribe-readable": (NEVER, "test_an_unreadable_resource_cannot_be_subscribed_to"),
        "subscribed-still-readable": (ALWAYS, "test_a_profile_is_notified_of_its_own_resources_only"),
    },
    "tests/behaviour/stdio/test_bridge.py": {
        "stdio-event-bound": (NEVER, "test_an_endless_event_is_bounded"),
        "stdio-body-bound": (NEVER, "test_an_endless_event_is_bounded"),
        "bridge-own-response": (ALWAYS, "test_a_broken_server_costs_one_request"),
    },
    "tests/behaviour/stdio/test_documents.py": {
        "stdio-credential-of-one": (NEVER, "test_a_credential_goes_to_its_own_document_only"),
    },
    "tests/behaviour/stdio/test_hostile_clients.py": {
        "stdio-line-bound": (SKIP, "test_lines_are_the_same_however_they_arrive"),
        "stdio-values": (SKIP, "test_each_malformed_line_is_answered_and_the_server_continues"),
        "stdio-no-batches": (NEVER, "test_each_malformed_line_is_answered_and_the_server_continues"),
        "stdio-one-id": (NEVER, "test_open_requests_are_bounded_and_have_ids_of_their_own"),
        "stdio-concurrency": (NEVER, "test_open_requests_are_bounded_and_have_ids_of_their_own"),
    },
    "tests/behaviour/updates/test_delivery.py": {
        "changed-template-notified": (NEVER, "test_a_changed_template_notifies_of_its_instances"),
    },
    "tests/behaviour/console/test_pages.py": {
        "console-difference-bounded": (NEVER, "test_a_line_of_a_megabyte_is_cut"),
        "console-form-token": (NEVER, "test_a_form_that_is_not_the_pages_stores_nothing"),
        "console-key-valid": (
            swap(" or not await self._credentials.still_valid(found.principal)", ""),
            "test_an_ended_key_ends_its_sessions",
        ),
        "console-origin": (NEVER, "test_forms_of_other_pages_are_refused"),
        "console-signed-out": (NEVER, "test_signing_out_ends_the_session"),
        "console-scope": (NEVER, "test_only_keys_that_approve_sign_in"),
        "console-target": (ALWAYS, "test_a_sign_in_leads_to_these_pages_only"),
        "console-visible": (swap("escape(text)", "text"), "test_hostile_texts_stay_texts"),
    },
    "tests/unit/web/console/test_sessions.py": {
        "cookie-life": (swap("self._life_s", "10**9"), "test_a_session_ends_after_an_hour_without_a_request"),
        "console-longest": (value("False"), "test_a_session_ends_after_eight_hours_of_use"),
    },
    "tests/behaviour/notifications/test_deliveries.py": {
        "webhook-endpoint-origin": (NEVER, "test_a_policy_that_names_origins_holds_for_webhooks"),
        "webhook-outcome-of-this-version": (NEVER, "test_a_late_410_disables_no_changed_endpoint"),
        "webhook-endpoint-held": (value("False"), "test_a_held_endpoint_gets_no_attempt"),
        "url-tls": (SKIP, "test_a_url_without_tls_is_refused"),
        "webhook-queue-bounded": (ALWAYS, "test_endpoints_and_queues_are_bounded"),
    },
    "tests/behaviour/notifications/test_receivers.py": {
        "egress-tenant-of-each-webhook": (
            swap("leased.tenant", '""'),
            "test_a_hostile_receiver_costs_one_attempt",
        ),
        "webhook-attempt-once": (value("()"), "test_an_attempt_that_its_replica_did_not_end_is_repeated"),
    },
    "tests/behaviour/updates/test_webhooks.py": {
        "webhook-signature": (NEVER, "test_an_invalid_signature_is_refused"),
        "webhook-time": (NEVER, "test_an_invalid_signature_is_refused"),
        "webhook-once": (NEVER, "test_a_delivery_counts_once"),
    },
    "tests/integration/calls/test_costly_validation.py": {
        "check-budget-loop": (ALWAYS, "test_an_expensive_valid_value_is_accepted"),
        "result-unread": (NEVER, "test_an_unchecked_result_reports_that_the_tool_has_run"),
        "child-memory": (SKIP, "test_a_child_has_no_more_memory_than_it_may"),
        "child-cpu-time": (SKIP, "test_a_child_has_no_more_time_than_it_may"),
        "child-wall-time": (
            swap("self._limits.wall_s", "None"),
            "test_a_check_that_takes_more_than_it_may_is_a_refusal",
        ),
    },
    "tests/integration/sandbox/test_warm_children.py": {
        "warm-child-owner": (
            swap("one.owner == owner", "True"),
            "test_a_process_serves_one_owner_and_is_reused_by_it_alone",
        ),
        "warm-child-quiet": (ALWAYS, "test_a_process_is_killed_after_anything_irregular"),
        "warm-child-irregular": (without(1), "test_a_process_is_killed_after_anything_irregular"),
    },
    "tests/behaviour/admin/test_live_sources.py": {
        "live-env-shown": (value("settings"), "test_secrets_of_a_command_are_not_shown"),
    },
    "tests/integration/catalog/live/test_attachments.py": {
        "live-rediscovery-of-another": (NEVER, "test_a_late_rediscovery_changes_nothing"),
        "live-report-stale": (without(2, 3), "test_a_late_report_changes_nothing"),
        "live-detach-other": (without(2, 3), "test_a_late_report_changes_nothing"),
        "live-review": (ALWAYS, "test_a_changed_definition_is_held_until_it_is_accepted"),
        "live-accept-seen": (NEVER, "test_only_the_read_definition_is_accepted"),
    },
    "tests/integration/catalog/live/test_live_sources.py": {
        "live-env-receiver": (
            NEVER,
            "test_a_variable_that_is_not_shown_keeps_its_value_for_its_program",
        ),
        "live-command-operator": (NEVER, "test_only_the_operator_declares_commands_and_only_if_allowed"),
        "live-command-setting": (NEVER, "test_only_the_operator_declares_commands_and_only_if_allowed"),
        "live-command-attached": (value("True"), "test_only_the_operator_declares_commands_and_only_if_allowed"),
    },
    "tests/behaviour/openapi/test_source_parameters.py": {
        "filled-headers": (NEVER, "test_a_parameter_replaces_a_scheme_and_unknown_credentials_are_refused"),
        "grant-parameters": (NEVER, "test_client_credentials_have_further_parameters"),
        "placeholder-once": (NEVER, "test_credentials_fill_parameters_of_every_document"),
        "timeout-maximum": (swap("min(own_s, self._max_s)", "own_s"), "test_the_operator_bounds_every_time_limit"),
        "timeout-refused": (NEVER, "test_a_source_has_a_time_limit_of_its_own"),
    },
    "tests/integration/catalog/sources/test_imports.py": {
        "name-clash": (SKIP, "test_a_name_clash_stores_nothing_and_its_prefix_resolves_it"),
        "primitives-limit": (NEVER, "test_a_tenant_gets_no_more_primitives_than_it_may_have"),
        "credential-destination": (ALWAYS, "test_stored_credentials_do_not_follow_a_source_to_another_host"),
    },
    "tests/integration/catalog/sources/test_refreshes.py": {
        "source-shrunk": (NEVER, "test_a_large_removal_is_proposed_where_it_is_allowed"),
        "refresh-interval-minimum": (NEVER, "test_the_schedule_has_a_minimum_and_needs_a_url"),
        "refresh-pause-minimum": (
            swap(
                "max(source.refresh_interval_s or 0, catalog.options.refresh_min_s)", "source.refresh_interval_s or 0"
            ),
            "test_the_schedule_has_a_minimum_and_needs_a_url",
        ),
        "refresh-lease": (NEVER, "test_one_replica_takes_a_look_and_one_that_was_slow_stores_nothing"),
        "refresh-wanted-under-lease": (NEVER, "test_reports_of_changes_make_one_look_that_is_not_too_soon"),
        "refresh-report-pause": (value("now"), "test_reports_of_changes_make_one_look_that_is_not_too_soon"),
        "active-version-kept": (
            swap(" if number != source.active_version", ""),
            "test_versions_beyond_the_limit_are_removed_but_not_used_ones",
        ),
        "rule-additions-only": (NEVER, "test_the_rule_waits_where_a_name_is_taken_by_another_source"),
        "source-as-seen": (NEVER, "test_changes_during_a_comparison_are_not_overwritten"),
        "proposal-as-reviewed": (NEVER, "test_changes_during_a_comparison_are_not_overwritten"),
        "proposal-of-the-active-version": (ALWAYS, "test_a_version_that_changed_since_it_was_read_is_not_activated"),
        "busy-is-no-failed-look": (NEVER, "test_a_look_for_which_no_worker_is_free_does_not_count_as_failed"),
        "ended-proposal-found-again": (NEVER, "test_a_proposal_that_ends_by_another_change_is_found_again"),
        "proposal-reported-once": (ALWAYS, "test_alternating_documents_make_one_proposal_at_a_time"),
    },
    "tests/integration/catalog/test_egress.py": {
        "egress-outdated-list": (ALWAYS, "test_an_outdated_list_permits_nothing_while_the_database_is_away"),
        "egress-exact-entries": (without(3, 4), "test_an_entry_that_is_not_exact_is_refused_by_its_place"),
    },
    "tests/integration/catalog/test_idempotency.py": {
        "idempotency-sealed": (
            swap("catalog.sealer.seal(tenant, wrapped, fingerprint, KIND, attempt.record, _REQUEST)", "fingerprint"),
            "test_nothing_at_rest_can_be_read_or_guessed",
        ),
        "idempotency-capped": (NEVER, "test_records_are_bounded_and_the_operator_has_room_of_its_own"),
        "idempotency-bytes-capped": (NEVER, "test_an_answer_too_large_to_keep_is_not_done_twice"),
        "idempotency-fenced": (NEVER, "test_a_request_whose_replica_died_runs_again_and_the_slow_one_changes_nothing"),
    },
    "tests/integration/handlers/test_declared_requests.py": {
        "handler-origins": (NEVER, "test_origins_that_the_tenant_does_not_allow_are_not_called"),
        "named-credential-origin": (NEVER, "test_a_credential_is_never_sent_to_another_origin"),
        "handler-credential-echo": (SKIP, "test_a_named_credential_goes_where_it_belongs_and_nothing_of_it_comes_back"),
        "pinned-arguments": (
            value('self._handler.settle({**cast("dict[str, object]", fixed), **given})'),
            "test_an_operation_with_fixed_arguments",
        ),
    },
    "tests/integration/jobs/test_scheduler.py": {
        "work-in-turns": (swap("w.turn <= of_each", "true"), "test_a_tenants_backlog_hides_no_other_work"),
    },
    "tests/integration/redis/sessions/test_records.py": {
        "session-record-of-its-tenant": (without(2, 3), "test_a_record_copied_to_another_tenant_is_no_session"),
        "session-id-form": (NEVER, "test_an_id_that_we_never_made_is_none_even_if_it_is_stored"),
        "session-cap": (
            swap("redis.call('ZCARD', KEYS[index]) >= tonumber(ARGV[index + 2])", "false"),
            "test_the_cap_holds_over_replicas",
        ),
    },
    "tests/integration/redis/test_pings_and_claims.py": {
        "request-id-claimed": (swap("0 end", "1 end"), "test_a_claimed_id_is_taken_until_it_is_released"),
    },
    "tests/integration/redis/test_response_streams.py": {
        "response-ends": (NEVER, "test_an_answer_that_is_gone_before_it_was_read_is_sent_all_the_same"),
    },
    "tests/integration/redis/test_subscribers.py": {
        "subscriptions-seldom-renewed": (
            swap("left ~= -2 and left < tonumber(ARGV[2])", "true"),
            "test_a_session_with_many_subscriptions_costs_as_little_as_one_with_none",
        ),
    },
    "tests/integration/store/audit/test_signed_heads.py": {
        "audit-signed-length": (NEVER, "test_an_end_that_was_cut_off_is_missed"),
    },
    "tests/integration/store/audit/test_spool.py": {
        "overflow-signature": (value("True"), "test_a_foreign_entry_is_refused"),
        "overflow-of-its-installation": (swap("{installation}", "one"), "test_two_installations_share_a_redis"),
        "overflow-of-its-tenants": (value("entries"), "test_entries_of_the_former_release_are_brought_back"),
    },
    "tests/integration/store/test_isolation.py": {
        "operator-tables": (
            swap("nullif(current_setting('app.tenant', true), '') is null", "true"),
            "test_the_operators_tables_are_hidden_from_transactions_of_tenants",
        ),
        "rls-policy": (value('"true"'), "test_raw_sql_without_a_tenant_sees_nothing"),
        "rls-check": (swap("check ({mine})", "check (true)"), "test_a_foreign_tenant_cannot_be_written"),
        "rls-enabled": (SKIP, "test_every_table_of_the_database_is_behind_the_wall"),
        "rls-past-the-wall": (SKIP, "test_only_the_app_may_call_the_definers_functions"),
        "audit-append-only": (swap("insert", "insert, update, delete"), "test_the_apps_role_cannot_open_the_wall"),
    },
    "tests/integration/store/test_migrations.py": {
        "rls-forced": (SKIP, "test_the_owner_sees_no_tenant_either"),
    },
    "tests/integration/store/test_poolers.py": {
        "no-transaction-pooler": (NEVER, "test_a_pooler_that_moves_sessions_is_refused"),
        "database-words-to-the-operator": (
            swap("UNREACHABLE, cause=", ""),
            "test_the_words_of_a_pooler_reach_the_operator_only",
        ),
    },
    "tests/integration/store/test_store.py": {
        "tenant-is-an-id": (NEVER, "test_an_id_that_is_more_than_an_id_begins_no_transaction"),
        "transaction-rolled-back": (NEVER, "test_a_transaction_commits_on_a_clean_exit_only"),
        "tenant-of-the-transaction": (swap("true", "false"), "test_the_tenant_ends_with_its_transaction"),
        "role-taken": (swap(', "role": APP_ROLE', ""), "test_a_superusers_login_still_runs_as_the_app"),
        "role-checked": (NEVER, "test_an_unsafe_role_never_serves"),
    },
    "tests/integration/upstream/http/test_pool.py": {
        "unread-body-of-an-error": (without(2), "test_an_error_to_a_request_with_a_body_ends_its_connection"),
        "bytes-on-an-idle-connection": (
            swap("is_quiet", "is_fit"),
            "test_bytes_that_the_loop_has_not_seen_yet_end_a_kept_connection",
        ),
        "share-of-the-connections": (value("False"), "test_a_tenant_holds_no_more_than_its_share"),
        "turns-at-the-connections": (
            swap(".pop(tenant)", "[tenant]"),
            "test_tenants_that_wait_for_room_are_served_in_turn",
        ),
    },
    "tests/integration/upstream/http/test_response.py": {
        "answer-unasked": (NEVER, "test_after_an_odd_answer_the_next_request_gets_its_own"),
        "answer-head": (NEVER, "test_an_endless_response_is_aborted"),
        "answer-chunks": (NEVER, "test_an_endless_response_is_aborted"),
        "answer-codings": (NEVER, "test_an_answer_that_is_not_http_is_broken"),
    },
    "tests/integration/upstream/test_client.py": {
        "never-twice": (without(1), "test_a_request_that_is_not_idempotent_is_never_sent_twice"),
        "answer-fields": (NEVER, "test_answers_that_are_not_http_are_broken"),
        "header-framing": (NEVER, "test_headers_that_would_change_the_message_are_never_sent"),
        "answer-limit-declared": (NEVER, "test_a_body_beyond_the_limit_is_not_read"),
    },
    "tests/integration/upstream/test_event_streams.py": {
        "part-of-an-answer": (NEVER, "test_a_partial_document_is_not_returned"),
    },
    "tests/integration/upstream/test_tls.py": {
        "tls": (
            value("ssl._create_unverified_context()"),
            "test_an_untrusted_certificate_or_one_of_another_name_is_refused",
        ),
    },
    "tests/unit/admin/test_admission.py": {
        "list-search-places": (NEVER, "test_a_list_that_may_be_read_to_its_end_is_costly"),
        "manifest-cost-of-objects": (SKIP, "test_an_application_counts_by_its_objects"),
        "admin-rate-key": (SKIP, "test_a_key_has_a_burst_and_a_body_counts_by_its_size"),
        "admin-rate-tenant": (SKIP, "test_the_keys_of_a_tenant_have_a_limit_together"),
        "admin-rate-address": (SKIP, "test_the_tenants_of_an_address_have_a_limit_together"),
        "admin-rate-anonymous": (SKIP, "test_requests_without_a_credential_are_counted_by_address"),
        "admin-cost-of-size": (value("1.0"), "test_a_key_has_a_burst_and_a_body_counts_by_its_size"),
        "admin-open-requests": (NEVER, "test_open_requests_are_bounded_by_key_tenant_and_address"),
        "admin-costly-work": (ALWAYS, "test_one_tenant_holds_a_quarter_of_the_places_for_costly_work"),
    },
    "tests/unit/admin/test_pagination.py": {
        "list-search-slices": (SKIP, "test_other_requests_are_served_while_a_list_is_compared"),
        "list-search-as-stored": (
            swap("text.casefold()", 'normalize("NFC", text.casefold())'),
            "test_a_text_is_searched_as_it_is_stored",
        ),
    },
    "tests/unit/app/test_local_programs.py": {
        "printed-key-for-one-person": (NEVER, "test_a_shared_gateway_prints_no_key_and_opens_no_address"),
    },
    "tests/behaviour/programs/test_imports.py": {
        "code-import-servers": (ALWAYS, "test_a_fetched_document_permits_no_address_of_this_machine"),
    },
    "tests/unit/app/python/test_registrations.py": {
        "code-of-its-tenant": (ALWAYS, "test_one_name_for_different_tenants_is_two_primitives"),
    },
    "tests/unit/app/test_settings.py": {
        "generated-keys-stay-here": (NEVER, "test_a_public_address_needs_keys_of_its_own"),
    },
    "tests/unit/calls/test_confirmation.py": {
        "policy-approve": (NEVER, "test_an_approval_is_not_the_users_to_give"),
        "policy-approve-completions": (NEVER, "test_a_primitive_that_is_approved_offers_no_values"),
        "confirm-yes": (without(2), "test_anything_but_a_yes_is_a_no"),
        "confirm-digest": (NEVER, "test_a_yes_is_a_yes_to_one_thing"),
        "policy-confirm-all": (value("False"), "test_resources_and_prompts_are_confirmed_too"),
        "confirm-recorded": (SKIP, "test_the_confirmed_call_is_made"),
        "confirm-asked-recorded": (NEVER, "test_the_confirmed_call_is_made"),
        "steps-outline": (
            swap(", outline=StepPreview(spec, self.egress)", ""),
            "test_a_list_of_steps_is_confirmed_with_its_requests",
        ),
        "preview-stored-credentials": (NEVER, "test_the_whole_request_is_shown_without_credentials"),
        "preview-named-credentials": (value("(is_list, False)"), "test_the_whole_request_is_shown_without_credentials"),
        "preview-lines": (value("text"), "test_the_whole_request_is_shown_without_credentials"),
        "preview-room": (
            swap("truncate(self._show(act, known, budget), budget)", "self._show(act, known, 4_000)"),
            "test_a_long_body_hides_no_later_request",
        ),
    },
    "tests/unit/calls/test_duplicate_members.py": {
        "repeated-names": (NEVER, "test_a_repeated_name_leaves_no_structured_content"),
    },
    "tests/unit/calls/test_pipeline.py": {
        "call-tenant": (NEVER, "test_a_tool_is_only_for_its_tenant_and_the_scope"),
        "call-scope": (NEVER, "test_a_tool_is_only_for_its_tenant_and_the_scope"),
        "policy-deny": (NEVER, "test_a_denied_level_is_refused_before_anything_is_prepared"),
        "confirm-falls-back": (value("False"), "test_an_unknown_decision_is_a_refusal"),
        "policy-confirm": (value("False"), "test_an_unknown_decision_is_a_refusal"),
        "arguments-validated": (NEVER, "test_invalid_arguments_reach_no_handler"),
        "intent-before-send": (NEVER, "test_the_intent_of_an_unsafe_call_is_recorded_before_it_is_sent"),
        "rate-limit": (
            becomes('return __import__("contextlib").nullcontext()'),
            "test_a_full_limit_is_raised_with_its_retry_hint_and_recorded",
        ),
        "crash-without-details": (
            becomes(
                "except Exception as error:\n"
                "    shown = result_rendering.failure(GatewayError(str(error)), call.correlation_id)\n"
                '    return _end(call, "crashed", shown)'
            ),
            "test_an_unexpected_exception_shows_only_its_correlation_id",
        ),
        "audit-before-answer": (SKIP, "test_without_the_trail_a_safe_call_has_no_answer"),
    },
    "tests/unit/catalog/live/test_discovery.py": {
        "live-discovery-time": (NEVER, "test_the_processor_time_of_a_reading_is_bounded"),
        "live-finding-count": (NEVER, "test_findings_are_bounded"),
        "live-page-in-meta": (value("value"), "test_pages_are_below_the_name_of_their_source"),
        "live-page-reviewed": (swap(" + page.encode()", ""), "test_other_contents_of_a_page_are_another_definition"),
        "live-page-unread": (value('""'), "test_a_page_that_cannot_be_reviewed_is_refused"),
        "live-hint-of-dangerous": (
            swap(" and not is_dangerous", ""),
            "test_hints_raise_the_level_and_never_lower_it",
        ),
    },
    "tests/unit/catalog/snapshots/test_live_primitives.py": {
        "live-name-taken": (ALWAYS, "test_every_other_primitive_hides_a_live_one"),
    },
    "tests/unit/catalog/snapshots/test_composition.py": {
        "old-name-of-another": (without(1), "test_an_old_name_leads_to_its_tool_until_it_is_taken"),
        "old-name-ends": (without(2), "test_an_old_name_ends_while_the_snapshot_lasts"),
    },
    "tests/unit/catalog/test_etags.py": {
        "change-of-a-known-version": (ALWAYS, "test_another_version_is_refused"),
    },
    "tests/unit/catalog/updates/test_signatures.py": {
        "webhook-signed-body": (swap("() + body", "()"), "test_the_known_answer_of_the_specification"),
    },
    "tests/unit/cli/output/test_printing.py": {
        "printed-controls": (swap("visible(str(text))", "str(text)"), "test_printed_text_passes_the_escapes"),
        "colored-controls": (
            swap("visible(segment.text)", "segment.text"),
            "test_a_style_is_no_way_around_the_escapes",
        ),
        "verifier-controls": (
            swap(".translate(_ESCAPES)", ""),
            "test_the_verifier_prints_a_forged_export_with_escapes",
        ),
    },
    "tests/behaviour/cli/test_names_and_bulk.py": {
        "approval-named-shown": (SKIP, "test_an_approval_is_decided_by_its_tool_after_it_was_shown"),
    },
    "tests/behaviour/cli/test_contexts.py": {
        "stored-key-private": (NEVER, "test_the_file_of_keys_is_private"),
        "stored-key-one-url": (NEVER, "test_a_stored_key_goes_to_its_own_url_only"),
    },
    "tests/behaviour/cli/test_completion.py": {
        "completed-plain": (NEVER, "test_a_name_that_a_shell_obeys_is_not_offered"),
    },
    "tests/unit/cli/client/test_admin_api.py": {
        "cli-one-segment": (NEVER, "test_a_name_that_would_lead_up_the_path_is_sent_nowhere"),
    },
    "tests/unit/definitions/json_schema/test_coercion.py": {
        "readings-work": (NEVER, "test_a_search_is_bounded_by_all_its_work"),
        "coercion-unique": (swap("len(accepted) == 1", "accepted"), "test_any_other_spelling_is_refused"),
        "coercion-one-media-type": (
            swap("(media_type and stated not in {None, media_type})", "False"),
            "test_a_data_uri_that_contradicts_its_type_is_refused",
        ),
    },
    "tests/unit/definitions/json_schema/test_validator_cache.py": {
        "check-crash": (SKIP, "test_a_defect_never_becomes_an_internal_error"),
        "schema-compiled": (SKIP, "test_a_defect_never_becomes_an_internal_error"),
    },
    "tests/unit/definitions/json_schema/test_work_bound.py": {
        "work-of-names": (value("Load(0, 0, 0, 0, 0)"), "test_names_are_counted_like_schemas"),
        "work-of-unevaluated": (SKIP, "test_nested_unevaluated_keywords_multiply"),
        "work-of-cycles": (SKIP, "test_the_dearest_schema_of_a_cycle_counts_for_all_of_it"),
        "work-of-depth": (SKIP, "test_ways_back_are_counted_for_one_part"),
        "work-of-patterns": (SKIP, "test_counted_repetitions_of_a_pattern_are_written_out"),
    },
    "tests/unit/definitions/test_template_bombs.py": {
        "template-steps": (NEVER, "test_a_tree_shares_one_budget"),
        "template-texts": (NEVER, "test_a_filter_makes_no_text_that_is_too_long"),
    },
    "tests/unit/domain/fairness/test_fair_cache.py": {
        "share-of-a-cache": (NEVER, "test_a_tenant_with_many_entries_evicts_its_own"),
    },
    "tests/unit/domain/fairness/test_queue.py": {
        "audit-groups-round-robin": (
            swap("len(self._queues) == 1", "self._queues"),
            "test_a_group_has_something_of_each_tenant",
        ),
        "share-of-the-audit-queue": (without(2), "test_a_tenant_fills_a_quarter"),
    },
    "tests/integration/upstream/test_body_room.py": {
        "large-bodies-wait": (NEVER, "test_a_large_body_has_room_before_it_is_read"),
        "large-bodies-of-unknown-size-wait": (NEVER, "test_a_large_body_has_room_before_it_is_read"),
        "parked-bodies-leave-the-bulkhead": (SKIP, "test_a_body_that_waits_leaves_the_bulkhead_and_ends_with_its_call"),
        "one-body-of-a-call": (SKIP, "test_a_call_holds_the_room_of_one_body"),
    },
    "tests/integration/upstream/live/test_large_messages.py": {
        "large-live-messages-wait": (NEVER, "test_a_large_message_has_room_until_it_is_parsed"),
        "live-message-values": (SKIP, "test_a_message_of_very_many_values_is_refused"),
    },
    "tests/integration/calls/test_result_processes.py": {
        "large-results-in-processes": (
            swap("size <= MAX_THREAD_BYTES", "True"),
            "test_large_and_costly_bodies_are_read_in_processes_of_their_tenant",
        ),
        "result-child-memory": (SKIP, "test_a_process_beyond_its_limits_is_killed"),
        "result-child-cpu-time": (SKIP, "test_a_process_beyond_its_limits_is_killed"),
        "result-child-wall-time": (swap("limits.wall_s", "60"), "test_a_process_beyond_its_limits_is_killed"),
    },
    "tests/integration/calls/test_large_results.py": {
        "steps-hold-no-body": (SKIP, "test_calls_with_several_bodies_do_not_wait_for_one_another"),
        "bodies-end-with-their-call": (SKIP, "test_every_end_of_a_call_releases_its_room"),
    },
    "tests/unit/domain/fairness/test_threads.py": {
        "large-work-off-the-loop": (ALWAYS, "test_large_work_runs_in_a_thread_and_small_work_does_not"),
    },
    "tests/unit/domain/fairness/test_share.py": {
        "share-of-places": (without(3), "test_one_tenant_holds_a_quarter_while_places_are_free"),
        "share-of-a-queue": (without(2), "test_the_queue_is_shared_like_the_places"),
        "places-round-robin": (SKIP, "test_waiters_are_served_round_robin_by_tenant"),
    },
    "tests/unit/domain/tenancy/test_ceilings.py": {
        "limits-below-their-ceilings": (
            swap("min(value, bounds[name])", "value"),
            "test_the_smaller_of_limit_and_ceiling_is_in_force",
        ),
    },
    "tests/unit/domain/tenancy/test_keys.py": {
        "key-checksum": (without(2), "test_one_wrong_character_is_noticed"),
    },
    "tests/unit/domain/listed/test_schema.py": {
        "listed-root-bounded": (NEVER, "test_the_alternatives_of_a_root_are_read_for_a_bounded_number_of_times"),
    },
    "tests/behaviour/protocol/test_accept_headers.py": {
        "lists-not-stored": (
            swap("is_list and size_of(body) <= MAX_STORED_LIST_BYTES", "is_list"),
            "test_a_large_list_is_json_for_every_client",
        ),
    },
    "tests/unit/domain/test_json_text.py": {
        "json-depth": (NEVER, "test_nesting_is_bounded_exactly"),
        "json-duplicates": (NEVER, "test_an_ambiguous_text_is_refused_with_its_place"),
        "json-duplicates-without-escapes": (NEVER, "test_an_ambiguous_text_is_refused_with_its_place"),
        "json-digits": (NEVER, "test_an_integer_has_at_most_so_many_digits"),
        "json-digits-read-fast": (without(2), "test_an_integer_has_at_most_so_many_digits"),
        "json-numbers": (becomes("return float(name)"), "test_an_ambiguous_text_is_refused_with_its_place"),
    },
    "tests/unit/handlers/response_body/test_charsets.py": {
        "charsets-only": (ALWAYS, "test_a_codec_that_is_no_charset_is_not_used"),
    },
    "tests/unit/handlers/response_body/test_reading.py": {
        "answer-values": (SKIP, "test_an_answer_of_very_many_values_is_not_read"),
    },
    "tests/unit/handlers/test_code_families.py": {
        "policy-deny-all": (SKIP, "test_the_policy_holds_for_every_family"),
        "prompt-missing": (NEVER, "test_every_missing_argument_is_named"),
    },
    "tests/unit/handlers/test_code_tools.py": {
        "code-without-token": (value("self"), "test_a_function_does_not_get_the_access_token_of_its_caller"),
        "answer-size": (NEVER, "test_a_huge_result_is_refused"),
        "code-exit": (SKIP, "test_every_error_of_a_function_is_a_clean_error"),
    },
    "tests/unit/handlers/test_declared.py": {
        "steps-kept": (NEVER, "test_kept_values_of_steps_are_bounded"),
    },
    "tests/unit/handlers/test_inner_calls.py": {
        "recursion-depth": (swap("depth >=", "depth >"), "test_a_tool_that_calls_itself_comes_to_an_end"),
        "recursion-width": (swap("MAX_CALLS", "10_000"), "test_one_call_makes_only_so_many_others"),
        "rounds-once": (NEVER, "test_inner_calls_before_a_question_run_once"),
        "rounds-lost": (NEVER, "test_an_answer_too_large_to_be_carried_is_never_asked_for_twice"),
    },
    "tests/unit/identity/test_authenticator.py": {
        "key-digest": (without(2), "test_an_unusable_key_is_refused_like_an_unknown_one"),
        "key-expiry": (
            swap("expires_at, key.revoked_at", "revoked_at,"),
            "test_an_unusable_key_is_refused_like_an_unknown_one",
        ),
        "key-revocation": (swap(", key.revoked_at", ","), "test_an_unusable_key_is_refused_like_an_unknown_one"),
        "key-constant-answer": (
            swap("_refusal()", 'Unauthenticated("the key has ended")'),
            "test_an_unusable_key_is_refused_like_an_unknown_one",
        ),
        "key-change-received": (value("self._drop(set())"), "test_a_forgotten_key_is_looked_up_again"),
        "operator-key": (ALWAYS, "test_a_stored_key_is_its_principal"),
        "operator-key-length": (NEVER, "test_a_short_operator_key_is_refused_at_the_start"),
        "key-lookups-after-a-change": (SKIP, "test_a_lookup_from_before_a_change_is_not_shared_after_it"),
        "key-lookups-once": (
            value("await self._find(token, mark)"),
            "test_concurrent_requests_with_one_key_are_one_query",
        ),
        "key-former-ends": (without(3), "test_a_former_secret_works_until_its_end"),
        "key-secret-ended": (value("True"), "test_a_former_secret_works_until_its_end"),
        "key-taken-along-replaced": (NEVER, "test_keys_looked_up_along_are_believed_like_the_queried_one"),
        "key-taken-along-older": (without(2), "test_keys_dropped_during_a_shared_lookup_are_not_remembered"),
        "remembered-by-token": (
            swap("token", '(authorization or "").encode()'),
            "test_spellings_of_one_header_are_remembered_once",
        ),
    },
    "tests/unit/identity/test_failure_limit.py": {
        "failures-limited": (NEVER, "test_an_address_beyond_the_failure_limit_gets_a_retry_hint"),
        "failures-batched": (NEVER, "test_wrong_keys_beyond_the_limit_are_looked_up_together"),
        "failures-known-keys": (without(2), "test_a_key_that_was_valid_here_does_not_wait_for_a_batch"),
        "failures-all-addresses": (without(2), "test_the_failures_of_all_addresses_have_a_limit_together"),
        "failures-batch-bounded": (NEVER, "test_a_batch_is_bounded_for_each_address_and_in_all"),
        "failures-logged-once": (without(2, 3), "test_an_address_beyond_its_limit_is_logged_once"),
    },
    "tests/unit/identity/test_local_token_buckets.py": {
        "buckets-bounded": (swap("limit", "10**9"), "test_memory_is_bounded_by_forgetting_the_least_recently_used"),
        "ipv6-client-network": (value("128"), "test_an_ipv6_client_has_a_whole_network"),
    },
    "tests/unit/identity/test_permissions.py": {
        "permission-tenant": (NEVER, "test_a_foreign_tenant_is_not_found"),
    },
    "tests/unit/identity/test_single_flight.py": {
        "key-lookups-at-once": (value("400"), "test_concurrent_requests_with_many_keys_look_up_a_few_at_a_time"),
    },
    "tests/unit/openapi/operation/test_tool_definition.py": {
        "method-of-any-case": (swap("method.upper()", "method"), "test_further_methods_keep_their_capitals"),
    },
    "tests/unit/openapi/document/test_document.py": {
        "yaml-alias-depth": (SKIP, "test_aliases_inside_aliases_count_their_depth"),
        "yaml-aliases": (SKIP, "test_a_bomb_of_aliases_is_refused_while_it_is_read"),
        "yaml-anchors": (NEVER, "test_yaml_beyond_plain_values_is_refused"),
        "yaml-tags": (NEVER, "test_yaml_beyond_plain_values_is_refused"),
        "yaml-depth": (NEVER, "test_depth_is_limited"),
        "json-document-depth": (NEVER, "test_depth_is_limited"),
        "document-values": (NEVER, "test_the_number_of_values_is_limited"),
        "document-bytes": (NEVER, "test_size_is_limited"),
    },
    "tests/unit/openapi/operation/test_selection.py": {
        "document-safety": (NEVER, "test_a_document_makes_no_tool_safer"),
        "chosen-excluded": (NEVER, "test_rules_choose_operations"),
        "chosen-outline": (swap("chosen", "operations"), "test_query_tools_know_only_selected_operations"),
    },
    "tests/unit/openapi/query/test_answers.py": {
        "plain-details": (SKIP, "test_details_have_plain_descriptions_and_values_as_declared"),
    },
    "tests/unit/openapi/query/test_truncation.py": {
        "resolved-depth": (without(2), "test_resolving_ends_within_the_depth_of_readers"),
        "page-bytes": (NEVER, "test_a_page_ends_where_it_has_enough"),
    },
    "tests/unit/openapi/operation/test_security.py": {
        "quoted-ways": (value("text"), "test_the_way_to_an_account_has_the_urls_of_the_document_quoted"),
    },
    "tests/unit/openapi/schema/test_translation.py": {
        "external-references": (NEVER, "test_a_schema_outside_the_document_skips_the_operation"),
        "hidden-text": (value("text.strip()"), "test_descriptions_hide_nothing"),
    },
    "tests/unit/openapi/test_degradation.py": {
        "document-operations": (NEVER, "test_the_number_of_operations_is_limited"),
    },
    "tests/unit/openapi/test_worker.py": {
        "body-values-before-reading": (SKIP, "test_many_values_are_counted_before_they_are_read"),
    },
    "tests/unit/protocol/methods/test_notification_throttle.py": {
        "notification-rate": (NEVER, "test_dropped_messages_are_counted_in_one_note"),
    },
    "tests/unit/protocol/stateless/test_subscriptions.py": {
        "listen-readable": (value("dict.fromkeys(uris)"), "test_a_client_gets_the_requested_and_permitted_lists"),
        "waiting-update-still-readable": (ALWAYS, "test_pending_updates_of_hidden_resources_are_dropped"),
    },
    "tests/unit/protocol/test_in_flight.py": {
        "requests-of-one-key": (NEVER, "test_a_key_has_so_many_and_another_its_own"),
        "share-of-open-requests": (
            swap("principal.tenant", "str(len(self._open))"),
            "test_all_keys_of_a_tenant_have_a_quarter_of_the_open_requests",
        ),
        "streams-of-one-key": (value("share_of(cap)"), "test_a_key_has_most_of_few_streams_and_half_of_many"),
    },
    "tests/unit/protocol/test_plain_envelopes.py": {
        "small-envelopes-remembered": (ALWAYS, "test_a_large_envelope_is_not_remembered"),
    },
    "tests/unit/protocol/test_sdk_seams.py": {
        "kernel-shared-connection": (NEVER, "test_no_handshake_is_made_on_a_shared_connection"),
    },
    "tests/unit/redis/test_envelopes.py": {
        "event-mac": (NEVER, "test_a_message_on_another_tenants_channel_is_refused"),
        "event-mac-binds-its-channel": (
            swap('channel + b"\\0" + payload', "payload"),
            "test_a_message_on_another_tenants_channel_is_refused",
        ),
        "event-tenant": (without(2), "test_a_payload_that_names_another_tenant_is_refused"),
    },
    "tests/unit/registry/test_registry.py": {
        "live-template-last": (
            swap("sorted(templates, key=_is_live)", "templates"),
            "test_a_template_of_a_live_source_comes_after_the_others",
        ),
    },
    "tests/unit/registry/test_cursors.py": {
        "cursor-signature": (NEVER, "test_a_cursor_is_invalid_elsewhere"),
        "cursor-of-its-list": (swap("listing, last", "last"), "test_a_cursor_is_invalid_elsewhere"),
    },
    "tests/unit/definitions/test_changed_fields.py": {
        "changes-concealed": (
            swap("_fingerprint(key, field)", "_to_json(str(field), key, depth)"),
            "test_declared_fields_show_only_that_they_changed",
        ),
        "changes-credential-names": (value("False"), "test_no_known_form_of_a_secret_is_recorded"),
        "changes-of-urls": (value("text"), "test_no_known_form_of_a_secret_is_recorded"),
        "changes-secret-forms": (value("value"), "test_no_known_form_of_a_secret_is_recorded"),
        "changes-bounded": (ALWAYS, "test_a_side_is_bounded_and_shows_the_elements_that_differ"),
    },
    "tests/unit/store/audit/test_refusals.py": {
        "refusals-counted": (NEVER, "test_the_first_refusals_are_entries_and_the_rest_one_entry_with_a_count"),
        "refusals-bounded": (NEVER, "test_tenants_are_bounded"),
        "refusals-of-invented-names": (value("rule.name"), "test_a_principal_hides_no_refusal_of_another"),
        "refusals-of-a-principal-bounded": (SKIP, "test_a_principal_hides_no_refusal_of_another"),
        "refusals-of-a-tenant-bounded": (NEVER, "test_a_tenant_has_a_bounded_number_of_entries"),
    },
    "tests/unit/store/audit/test_hash_chain.py": {
        "audit-begins-with-creation": (value("True"), "test_changes_begin_with_the_creation_of_the_tenant"),
    },
    "tests/unit/store/test_encryption.py": {
        "secret-in-its-place": (value('b""'), "test_a_value_moved_to_another_place_does_not_open"),
    },
    "tests/unit/upstream/auth/test_credentials.py": {
        "credential-over-argument": (
            value("request.headers"),
            "test_a_credential_replaces_an_argument_in_its_place",
        ),
        "credential-on-the-request": (
            swap("digest_of", 'b"" and digest_of'),
            "test_requests_with_other_secrets_use_other_connections",
        ),
    },
    "tests/unit/upstream/egress/test_allow_list.py": {
        "egress-tenant-of-each-request": (swap("tenant=poll.tenant, ", ""), "test_every_request_names_its_tenant"),
    },
    "tests/unit/upstream/egress/test_guard.py": {
        "egress-table": (value("True"), "test_an_inner_address_is_refused_by_both_questions"),
        "egress-metadata": (SKIP, "test_an_inner_address_is_refused_by_both_questions"),
        "egress-ipv6": (value("True"), "test_an_inner_address_is_refused_by_both_questions"),
        "egress-transition-networks": (without(2), "test_an_inner_address_is_refused_by_both_questions"),
        "egress-allowed-names": (without(2), "test_an_allowed_name_never_reaches_link_local_or_reserved_addresses"),
        "egress-every-address": (swap("addresses", "addresses[:1]"), "test_one_bad_answer_spoils_all"),
        "egress-ports": (without(2), "test_ports_of_other_protocols_are_refused"),
    },
    "tests/unit/upstream/http/test_connection.py": {
        "answer-kept-whole": (without(1), "test_a_connection_released_inside_its_response_is_closed"),
        "response-before-the-request-ends": (
            NEVER,
            "test_a_response_before_the_end_of_the_request_closes_the_connection",
        ),
    },
    "tests/unit/upstream/serialize/test_path_safety.py": {
        "path-dot-segments": (NEVER, "test_a_value_that_could_mean_another_path_is_refused"),
        "path-decoded-twice": (swap(", once, twice", ","), "test_a_value_that_could_mean_another_path_is_refused"),
        "path-encoded": (value("text"), "test_other_values_are_encoded_whole"),
    },
    "tests/unit/upstream/serialize/test_request_builder.py": {
        "header-injection": (NEVER, "test_header_values_that_would_arrive_differently_are_refused"),
        "header-identity": (NEVER, "test_headers_of_the_gateway_are_not_filled_from_arguments"),
    },
    "tests/unit/upstream/test_decompression.py": {
        "inflate-limit": (without(1), "test_a_result_beyond_the_limit_is_refused"),
        "inflate-ratio": (without(2), "test_a_bomb_is_stopped_by_its_ratio"),
        "inflate-members": (without(2), "test_a_stream_of_countless_members_is_refused"),
    },
    "tests/unit/upstream/test_event_stream.py": {
        "events-bounded": (value("False"), "test_events_are_counted_and_bounded"),
    },
    "tests/unit/web/test_authentication.py": {
        "one-credential": (without(2), "test_two_credentials_are_refused"),
    },
    "tests/unit/web/test_bodies.py": {
        "body-limit-counted": (NEVER, "test_a_body_beyond_the_limit_is_refused_before_the_rest_is_read"),
    },
    "tests/unit/web/test_body_timeout.py": {
        "body-pace": (SKIP, "test_a_slow_body_times_out"),
    },
    "tests/unit/web/test_edge.py": {
        "slow-body": (NEVER, "test_a_slow_body_is_answered_by_the_edge"),
        "no-websockets": (value("self._app(scope, receive, send)"), "test_other_protocols_do_not_get_through"),
        "unforeseen-errors": (ALWAYS, "test_an_unforeseen_error_is_a_problem_without_details"),
    },
    "tests/unit/web/test_health.py": {
        "readyz-no-reasons": (ALWAYS, "test_the_public_is_given_no_reasons"),
    },
    "tests/unit/web/test_provider_connection.py": {
        "provider-outbox": (NEVER, "test_messages_that_are_not_sent_are_bounded"),
        "provider-pace": (NEVER, "test_messages_above_the_rate_wait"),
    },
    "tests/unit/web/test_refusal_log.py": {
        "refusals-logged-few": (NEVER, "test_a_flood_of_refusals_writes_few_lines_and_counts_the_rest"),
    },
    "tests/integration/upstream/live/test_commands.py": {
        "live-command-environment": (
            swap('{"PATH": os.environ.get("PATH", _DEFAULT_PATH), **env}', "{**os.environ, **env}"),
            "test_a_program_has_no_environment_but_its_own",
        ),
        "live-line-length": (SKIP, "test_a_broken_program_ends_its_calls"),
        "live-inbox-count": (NEVER, "test_a_flood_about_one_request_ends_it"),
        "live-inbox-full": (NEVER, "test_questions_that_wait_for_a_client_are_bounded"),
        "live-unsolicited-count": (NEVER, "test_a_broken_program_ends_its_calls"),
        "live-question-of-one": (ALWAYS, "test_calls_run_at_once_and_questions_reach_the_only_one"),
    },
    "tests/integration/upstream/live/test_caller_sessions.py": {
        "live-question-of-one-caller": (NEVER, "test_a_question_while_several_requests_run"),
        "live-stream-count": (NEVER, "test_streams_are_bounded"),
    },
    "tests/unit/handlers/test_live_results.py": {
        "live-link-noted": (ALWAYS, "test_links_are_readable_if_they_stay_links_to_resources"),
        "live-link-scheme": (value("True"), "test_other_links_become_text"),
        "live-embedded-scheme": (ALWAYS, "test_an_embedded_script_is_only_its_text"),
        "live-page-of-its-source": (value("uri"), "test_pages_are_those_of_the_source"),
    },
    "tests/unit/registry/test_live_pages.py": {
        "live-page-visibility": (ALWAYS, "test_tools_of_sources_with_pages_have_their_names_there"),
        "live-page-tool": (swap("len(names) == 1", "names"), "test_a_name_at_a_source_finds_the_only_shown_tool"),
        "live-page-template": (swap("not is_page(uri)", "True"), "test_no_template_of_a_source_serves_a_page"),
    },
    "tests/unit/jobs/live/test_page_reader.py": {
        "live-page-count": (SKIP, "test_pages_are_bounded"),
    },
    "tests/behaviour/live/test_apps.py": {
        "live-page-pinned": (NEVER, "test_a_page_that_changes_waits_for_a_review"),
    },
    "tests/unit/registry/test_linked_resources.py": {
        "access-linked": (value("True"), "test_access_rules_apply_to_linked_resources"),
        "linked-of-the-profile": (NEVER, "test_a_profile_selects_linked_resources_by_uri_and_source"),
        "linked-selected": (value("True"), "test_source_policy_and_patterns_apply_to_linked_resources"),
    },
    "tests/integration/redis/live/test_linked_resources.py": {
        "linked-resource-count": (
            swap("tonumber(ARGV[2])", "100000"),
            "test_links_and_owners_are_bounded",
        ),
        "linked-resource-fair": (
            swap("then most = source end", "then most = most end"),
            "test_a_source_does_not_evict_the_links_of_one_with_fewer",
        ),
        "linked-resource-first": (
            swap("HSETNX", "HSET"),
            "test_another_source_neither_takes_over_a_link_nor_keeps_it",
        ),
        "linked-resource-mac": (value("True"), "test_a_planted_link_leads_nowhere"),
        "linked-resource-owner": (
            swap("_digest(owner)", "'x'"),
            "test_a_link_is_of_its_owner_and_the_source_that_returned_it_first",
        ),
    },
    "tests/integration/redis/live/test_upstream_sessions.py": {
        "upstream-session-cap": (swap("if over > 0", "if false"), "test_the_idlest_session_above_a_limit_ends"),
        "upstream-session-owner": (
            swap("_digest(key.owner.subject)", "_digest('')"),
            "test_a_session_is_found_at_every_replica_by_its_owner_only",
        ),
    },
    "tests/behaviour/live/test_federation.py": {
        "live-origin-called": (NEVER, "test_calls_follow_the_origins_of_the_policy"),
    },
    "tests/integration/upstream/live/test_faulty_lists.py": {
        "live-repeated-cursor": (swap("cursor in seen", "False"), "test_a_cursor_that_leads_nowhere_ends_its_list"),
        "live-discovery-count": (NEVER, "test_too_many_entries_are_left_out"),
        "live-discovery-bytes": (NEVER, "test_huge_definitions_end_the_lists"),
    },
    "tests/integration/upstream/live/test_hostile_servers.py": {
        "live-response-id": (NEVER, "test_an_invalid_message_fails_the_call"),
        "live-message-count": (NEVER, "test_a_flood_of_messages_ends_the_call"),
        "live-event-size": (NEVER, "test_an_endless_event_ends_the_call"),
        "stream-limit": (NEVER, "test_a_huge_body_ends_the_call"),
        "live-question-count": (NEVER, "test_a_flood_of_questions_ends_the_call"),
        "live-question-rounds": (NEVER, "test_required_input_is_bounded"),
        "live-progress-token": (without(2), "test_progress_of_another_token_is_dropped"),
        "live-declared-headers": (NEVER, "test_declared_headers_cannot_frame_or_identify"),
        "live-credential-echo": (value("raw"), "test_the_credential_is_redacted_wherever_it_is_echoed"),
        "live-session-identity": (value("b''"), "test_sessions_serve_one_identity"),
        "live-local-session-count": (NEVER, "test_sessions_of_http_sse_are_bounded"),
        "live-shared-credential": (
            value("self._endpoint"),
            "test_a_server_without_sessions_receives_the_credential_of_today",
        ),
        "live-home-credential": (NEVER, "test_the_home_of_sessions_follows_a_rotated_credential"),
        "live-session-id": (NEVER, "test_a_session_id_that_cannot_be_sent_is_refused"),
        "live-followed-count": (NEVER, "test_followed_resources_are_bounded"),
        "live-endpoint-origin": (NEVER, "test_an_endpoint_of_another_origin_is_refused"),
    },
}

_OF_OPERATORS: dict[str, dict[str, tuple[Mutation, str]]] = {
    "tests/unit/app/test_worker_sockets.py": {
        "shared-port-alone": (NEVER, "test_a_used_port_is_refused"),
    },
    "tests/attacks/operator_roles/test_role_matrix.py": {
        "installation-objects-of-operators": (SKIP, "test_a_tenant_reaches_no_operators"),
        "installation-trail-of-operators": (SKIP, "test_a_tenant_reaches_no_operators"),
        "operator-creator-own": (without(2), "test_roles_reach_the_endpoints_of_the_table"),
        "operator-kinds-shown": (swap(", scopes=self._readers", ""), "test_a_tenant_reaches_no_operators"),
        "operator-outside-tenants": (ALWAYS, "test_roles_reach_the_endpoints_of_the_table"),
        "operator-readers-read": (NEVER, "test_roles_reach_the_endpoints_of_the_table"),
        "operator-tenants": (value("True"), "test_roles_reach_the_endpoints_of_the_table"),
        "operator-tenants-listed": (value("None"), "test_an_operator_lists_its_tenants_only"),
    },
    "tests/behaviour/operators/test_installation_trail.py": {
        "break-glass-noted": (NEVER, "test_the_key_of_the_setting_is_an_event_once_operators_have_names"),
    },
    "tests/behaviour/operators/test_issuers_of_operators.py": {
        "operator-grant-named": (NEVER, "test_the_issuers_of_operators_are_the_installations"),
        "operator-grant-of-people": (
            value("not own.isdisjoint(self.who)"),
            "test_grants_limit_people_and_workloads",
        ),
        "operator-keys-off": (NEVER, "test_keys_are_switched_off_where_people_administer"),
    },
    "tests/behaviour/operators/test_operator_keys.py": {
        "operator-key-revoked": (SKIP, "test_a_rotated_and_a_deleted_key_is_refused_at_once"),
        "operator-rights-changed": (SKIP, "test_a_change_of_the_role_applies_to_the_next_request"),
    },
    "tests/attacks/kinds/test_kind_matrix.py": {
        "operator-grants-of-administrators": (SKIP, "test_principals_use_the_verbs_of_the_declaration"),
        "operator-keys-of-administrators": (SKIP, "test_principals_use_the_verbs_of_the_declaration"),
    },
}

_OF_EACH_KIND: dict[str, dict[str, tuple[Mutation, str]]] = {
    "tests/attacks/kinds/test_kind_matrix.py": {
        "admin-scope": (
            value("require(caller, caller.tenant)"),
            "test_principals_use_the_verbs_of_the_declaration",
        ),
        "admin-tenant-of-the-path": (NEVER, "test_principals_use_the_verbs_of_the_declaration"),
    },
    "tests/attacks/kinds/test_kinds_in_manifests.py": {
        "manifest-adopts-nothing": (NEVER, "test_a_set_takes_over_no_object_of_any_kind"),
        "manifest-names-no-ids": (NEVER, "test_an_id_is_no_name_in_manifests"),
        "manifest-names-once": (NEVER, "test_an_object_of_any_kind_is_named_once"),
        "plan-is-current": (NEVER, "test_a_plan_expects_the_version_of_any_kind"),
        "prune-bounded": (NEVER, "test_pruning_removes_objects_of_its_set_only"),
        "prune-own-objects": (NEVER, "test_pruning_removes_objects_of_its_set_only"),
        "prune-protected": (NEVER, "test_pruning_of_protected_kinds_needs_a_permission"),
        "replacement-keeps-rules": (NEVER, "test_a_replacement_keeps_stored_members_of_any_kind"),
    },
    "tests/integration/catalog/test_collections.py": {
        "kind-bounded": (NEVER, "test_a_kind_is_bounded"),
    },
    "tests/integration/catalog/test_kept_secrets.py": {
        "secret-receivers": (NEVER, "test_a_secret_is_not_kept_for_another_receiver"),
    },
}
"""The guards of the engines of kinds: each case of a test is a kind, and all of them fail without the guard."""

GUARDS = tuple(
    Guard(name, mutation, f"{file}::{test}", is_of_each_kind=table is _OF_EACH_KIND)
    for table in (_BY_TEST_FILE, _OF_OPERATORS, _OF_EACH_KIND)
    for file, rows in table.items()
    for name, (mutation, test) in rows.items()
)
