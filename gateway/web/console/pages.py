"""HTML of the approval pages. `gateway.web.html.documents` describes the escaping."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gateway.catalog.etags import tag_of
from gateway.domain.calls.approvals import Approval, ApprovalState, is_same_subject
from gateway.domain.tenancy.principals import Principal
from gateway.handlers.previews.requests import escape, truncate
from gateway.web.console.limits import MAX_COMMENT_LENGTH
from gateway.web.console.request_text import compare_lines, request_lines, show_lines
from gateway.web.html.documents import alert, moment, page, visible
from gateway.web.html.limits import MAX_TEXT_LENGTH

_BANNER = Markup("""<nav aria-label="Approvals"><a href="{path}">Approvals</a></nav>
<form method="post" action="{sign_out}">
<input type="hidden" name="token" value="{token}">
<span>Tenant <strong>{slug}</strong>, signed in as <strong>{subject}</strong></span>
<button>Sign out</button>
</form>""")
_SIGN_IN = Markup("""{alert}<form method="post" action="/approvals/sign-in">
<input type="hidden" name="next" value="{next}">
<p><label for="key">Key with the scope <code>approve</code></label><br>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus aria-describedby="about">
</p>
<p id="about">The key is sent to this gateway only. You stay signed in for at most eight hours.</p>
<p><button>Sign in</button></p>
</form>
<p><a href="{next}">I have signed in already</a></p>
<p>Without a key: if your organisation signs you in, open <code>/t/TENANT{next}</code> here, with the name of your
tenant.</p>""")
_LIST = Markup("""<section aria-labelledby="waiting"><h2 id="waiting">Waiting for a decision</h2>
{waiting}</section>
<section aria-labelledby="decided"><h2 id="decided">Recently decided</h2>
{lately}</section>""")
_TABLE = Markup("""<table aria-labelledby="{id}"><thead><tr><th scope="col">Call</th><th scope="col">Requested by</th>
<th scope="col">Requested</th><th scope="col">Expires</th><th scope="col">State</th></tr></thead>
<tbody>{rows}</tbody></table>""")
_ROW = Markup("""<tr><th scope="row"><a href="{path}/{id}"><bdi>{tool}</bdi></a></th><td><bdi>{subject}</bdi></td>
<td>{created}</td><td>{expires}</td><td>{state}</td></tr>
""")
_APPROVAL = Markup("""{alert}<section aria-labelledby="warnings"><h2 id="warnings">Effects</h2>
{warnings}</section>
<section aria-labelledby="facts"><h2 id="facts">Who and when</h2>
<dl>{facts}</dl></section>
<section aria-labelledby="request"><h2 id="request">Request</h2>
<p>This request is sent unchanged, with credentials added. Unprintable characters are escaped.</p>
<pre tabindex="0" aria-labelledby="request">{request}</pre></section>
<section aria-labelledby="difference"><h2 id="difference">Difference to the last approved call of this tool</h2>
{difference}</section>
<section aria-labelledby="decision"><h2 id="decision">Decision</h2>
{decision}</section>""")
_FORM = Markup("""<form method="post" action="{path}/{id}">
<input type="hidden" name="token" value="{token}">
<input type="hidden" name="tag" value="{tag}">
<p><label for="comment">Comment (the requester sees the comment of a denial)</label><br>
<textarea id="comment" name="comment" rows="3" maxlength="{max_length}"></textarea></p>
<p><button name="verdict" value="approve" class="approve">Approve</button>
<button name="verdict" value="deny" class="deny">Deny</button></p>
</form>""")
_DECIDED = Markup("{verdict} by {by} at {at}.")
_LINE_TEMPLATES = {"+": Markup("<ins>+ {}</ins>\n"), "-": Markup("<del>- {}</del>\n"), "@": Markup("<b>@{}</b>\n")}
_UNCHANGED_LINE = Markup("  {}\n")
_STATE_TEXTS = {
    ApprovalState.EXPIRED: "No person decided, or the call was not repeated, in time.",
    ApprovalState.SUPERSEDED: "The tool, the policy or the credential changed; the call needs another approval.",
    ApprovalState.RUNNING: "The call runs now.",
    ApprovalState.DONE: "The call ran.",
    ApprovalState.UNKNOWN: "The call was interrupted. It may have been carried out, and is not repeated.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPlace:
    """The path of the approval list, and the CSRF tokens of one session."""

    path: str
    token: str
    sign_out: str
    """The path that ends the session."""
    sign_out_token: str


def approval_page(title: str, content: Markup, principal: Principal, place: ApprovalPlace) -> str:
    """Return a complete page; its banner has the sign-out button."""
    banner = _BANNER.format(
        path=place.path,
        sign_out=place.sign_out,
        token=place.sign_out_token,
        slug=principal.slug,
        subject=visible(principal.subject),
    )
    return page(title, content, banner=banner)


def sign_in_form(target: str, *, text: str = "") -> Markup:
    """Return the sign-in form; `target` is the path after the sign-in."""
    return _SIGN_IN.format(next=target, alert=alert(text))


def approval_list(
    waiting: Sequence[Approval], lately: Sequence[Approval], place: ApprovalPlace, *, limit: int
) -> Markup:
    """Return the list page: pending approvals with a link to older ones, and the most recently decided ones."""
    table = _table("waiting", waiting, place)
    if len(waiting) == limit:
        older = Markup('<p><a href="{}?after={}">Older calls that wait</a></p>')
        table += older.format(place.path, waiting[-1].id)
    return _LIST.format(waiting=table, lately=_table("decided", lately, place))


def approval_content(
    approval: Approval, earlier: Approval | None, *, principal: Principal, place: ApprovalPlace, text: str = ""
) -> Markup:
    """Return the page of one approval, with the decision form if the principal can decide."""
    lines = request_lines(approval.request)
    return _APPROVAL.format(
        alert=alert(text),
        warnings=_items([truncate(escape(warning), MAX_TEXT_LENGTH * 4) for warning in approval.warnings]),
        facts=_details(approval),
        request=show_lines(lines),
        difference=_difference(lines, earlier, place),
        decision=_decision(approval, principal, place),
    )


def _decision(approval: Approval, principal: Principal, place: ApprovalPlace) -> Markup:
    if approval.state is not ApprovalState.PENDING:
        return Markup('<p role="status">{}</p>').format(describe_state(approval))
    if is_same_subject(approval.subject, principal.subject):
        reason = "You requested this call yourself, so another person must decide."
        return Markup('<p role="status">{}</p>').format(reason)
    tag = tag_of(approval)
    return _FORM.format(path=place.path, id=approval.id, token=place.token, tag=tag, max_length=MAX_COMMENT_LENGTH)


def describe_state(approval: Approval) -> Markup:
    """Return the state of an approval in words."""
    more = _STATE_TEXTS.get(approval.state, "")
    if approval.decided_by is None or approval.decided_at is None:
        return Markup("{}").format(more or f"The approval is {approval.state}.")
    parts = [
        _DECIDED.format(
            verdict="Denied" if approval.state is ApprovalState.DENIED else "Approved",
            by=visible(approval.decider_subject or approval.decided_by),
            at=moment(approval.decided_at),
        ),
        more,
        f"Comment: {truncate(escape(approval.comment), MAX_COMMENT_LENGTH)}" if approval.comment else "",
    ]
    return Markup(" ").join(part for part in parts if part)


def _details(approval: Approval) -> Markup:
    pairs = [
        ("State", str(approval.state)),
        ("Tool", visible(approval.tool)),
        ("Requested by", f"{visible(approval.subject)} ({visible(approval.requester)})"),
        ("Profile", visible(approval.profile or "any")),
        ("Requested", moment(approval.created_at)),
        ("Expires", moment(approval.expires_at)),
        ("Reason", f"The tenant's policy (version {approval.policy_version}) needs an approval of this call."),
        ("Approval", approval.id),
    ]
    return Markup("").join(Markup("<dt>{}</dt><dd><bdi>{}</bdi></dd>\n").format(*pair) for pair in pairs)


def _difference(lines: Sequence[str], earlier: Approval | None, place: ApprovalPlace) -> Markup:
    if earlier is None:
        return Markup("<p>No earlier call of this tool was approved.</p>")
    compared = compare_lines(request_lines(earlier.request), lines)
    link = Markup('<a href="{}/{}">{}</a>').format(place.path, earlier.id, moment(earlier.created_at))
    if compared is None:
        return Markup("<p>The requests are too long to compare. The earlier one is of {}.</p>").format(link)
    if not compared:
        return Markup("<p>None: it is the same request as that of {}.</p>").format(link)
    marked = Markup("").join(_LINE_TEMPLATES.get(sign, _UNCHANGED_LINE).format(line) for sign, line in compared)
    about = Markup("<p>Compared with the call of {}. Lines with + are new, lines with - were there before.</p>")
    return about.format(link) + Markup('<pre tabindex="0" aria-labelledby="difference">{}</pre>').format(marked)


def _table(label: str, found: Sequence[Approval], place: ApprovalPlace) -> Markup:
    if not found:
        return Markup("<p>None.</p>")
    rows = Markup("").join(
        _ROW.format(
            path=place.path,
            id=one.id,
            tool=visible(one.tool),
            subject=visible(one.subject),
            created=moment(one.created_at),
            expires=moment(one.expires_at),
            state=str(one.state),
        )
        for one in found
    )
    return _TABLE.format(id=label, rows=rows)


def _items(texts: Sequence[str]) -> Markup:
    if not texts:
        return Markup("<p>No effects are known besides the request below.</p>")
    return Markup("<ul>{}</ul>").format(
        Markup("").join(Markup("<li><bdi>{}</bdi></li>\n").format(text) for text in texts)
    )
