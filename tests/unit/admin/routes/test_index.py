"""Order of paths: literal last segments precede names, and answer for objects of these names."""

from gateway.admin.routes.index import ENDPOINTS, collect_paths


def test_every_route_is_at_one_path() -> None:
    """Ours: each declared endpoint is routed, under its own method (ADM-1)."""
    routed = {
        (method, path): route for path, methods, _ in collect_paths(ENDPOINTS) for method, route in methods.items()
    }
    assert {(route.method, route.path) for route in ENDPOINTS} <= set(routed)
    for route in ENDPOINTS:
        assert routed[route.method, route.path] is route


def test_a_path_that_shadows_a_name_answers_for_it() -> None:
    """Ours: something named `validate` or `updated` is as reachable as anything else (PRG-3)."""
    places = collect_paths(ENDPOINTS)
    by_path = {path: (methods, fixed) for path, methods, fixed in places}
    methods, fixed = by_path["/tenants/{t}/tools/validate"]
    assert (set(methods), fixed) == ({"GET", "POST", "PUT", "PATCH", "DELETE"}, {"name": "validate"})
    assert by_path["/tenants/{t}/resources/updated"][1] == {"id": "updated"}
    assert by_path["/tenants/{t}/tools/{name}"][1] == {}
    order = [path for path, _, _ in places]
    assert order.index("/tenants/{t}/tools/validate") < order.index("/tenants/{t}/tools/{name}")
