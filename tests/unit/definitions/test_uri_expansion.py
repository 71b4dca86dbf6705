"""Whether URI templates expand as every example of RFC 6570 says."""

from typing import Any

import pytest

from gateway.errors import ResourceValidationError
from tests.support.uri_expansion import expand

LEVELS: dict[str, Any] = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": "1024", "y": "768"}
LEVEL_4 = LEVELS | {
    "empty": "",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
}
SECTION_3: dict[str, Any] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": {},
    "undef": None,
}

SECTION_1_2 = [
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{+var}", "value"),
    ("{+hello}", "Hello%20World!"),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    ("X{#var}", "X#value"),
    ("X{#hello}", "X#Hello%20World!"),
    ("map?{x,y}", "map?1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path,x}/here", "/foo/bar,1024/here"),
    ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("X{.var}", "X.value"),
    ("X{.x,y}", "X.1024.768"),
    ("{/var}", "/value"),
    ("{/var,x}/here", "/value/1024/here"),
    ("{;x,y}", ";x=1024;y=768"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"),
    ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ("{var:3}", "val"),
    ("{var:30}", "value"),
    ("{list}", "red,green,blue"),
    ("{list*}", "red,green,blue"),
    ("{keys}", "semi,%3B,dot,.,comma,%2C"),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
    ("{+path:6}/here", "/foo/b/here"),
    ("{+list}", "red,green,blue"),
    ("{+list*}", "red,green,blue"),
    ("{+keys}", "semi,;,dot,.,comma,,"),
    ("{+keys*}", "semi=;,dot=.,comma=,"),
    ("{#path:6}/here", "#/foo/b/here"),
    ("{#list}", "#red,green,blue"),
    ("{#list*}", "#red,green,blue"),
    ("{#keys}", "#semi,;,dot,.,comma,,"),
    ("{#keys*}", "#semi=;,dot=.,comma=,"),
    ("X{.var:3}", "X.val"),
    ("X{.list}", "X.red,green,blue"),
    ("X{.list*}", "X.red.green.blue"),
    ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
    ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
    ("{/var:1,var}", "/v/value"),
    ("{/list}", "/red,green,blue"),
    ("{/list*}", "/red/green/blue"),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
    ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
    ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
    ("{;hello:5}", ";hello=Hello"),
    ("{;list}", ";list=red,green,blue"),
    ("{;list*}", ";list=red;list=green;list=blue"),
    ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
    ("{?var:3}", "?var=val"),
    ("{?list}", "?list=red,green,blue"),
    ("{?list*}", "?list=red&list=green&list=blue"),
    ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
    ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
    ("{&var:3}", "&var=val"),
    ("{&list}", "&list=red,green,blue"),
    ("{&list*}", "&list=red&list=green&list=blue"),
    ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
    ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
]

SECTION_3_2 = [
    ("{count}", "one,two,three"),
    ("{count*}", "one,two,three"),
    ("{/count}", "/one,two,three"),
    ("{/count*}", "/one/two/three"),
    ("{;count}", ";count=one,two,three"),
    ("{;count*}", ";count=one;count=two;count=three"),
    ("{?count}", "?count=one,two,three"),
    ("{?count*}", "?count=one&count=two&count=three"),
    ("{&count*}", "&count=one&count=two&count=three"),
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{half}", "50%25"),
    ("O{empty}X", "OX"),
    ("O{undef}X", "OX"),
    ("{x,y}", "1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("?{x,empty}", "?1024,"),
    ("?{x,undef}", "?1024"),
    ("?{undef,y}", "?768"),
    ("{var:3}", "val"),
    ("{var:30}", "value"),
    ("{list}", "red,green,blue"),
    ("{list*}", "red,green,blue"),
    ("{keys}", "semi,%3B,dot,.,comma,%2C"),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
    ("{+var}", "value"),
    ("{+hello}", "Hello%20World!"),
    ("{+half}", "50%25"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    ("{+base}index", "http://example.com/home/index"),
    ("O{+empty}X", "OX"),
    ("O{+undef}X", "OX"),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    ("up{+path}{var}/here", "up/foo/barvalue/here"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path,x}/here", "/foo/bar,1024/here"),
    ("{+path:6}/here", "/foo/b/here"),
    ("{+list}", "red,green,blue"),
    ("{+list*}", "red,green,blue"),
    ("{+keys}", "semi,;,dot,.,comma,,"),
    ("{+keys*}", "semi=;,dot=.,comma=,"),
    ("{#var}", "#value"),
    ("{#hello}", "#Hello%20World!"),
    ("{#half}", "#50%25"),
    ("foo{#empty}", "foo#"),
    ("foo{#undef}", "foo"),
    ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("{#path:6}/here", "#/foo/b/here"),
    ("{#list}", "#red,green,blue"),
    ("{#list*}", "#red,green,blue"),
    ("{#keys}", "#semi,;,dot,.,comma,,"),
    ("{#keys*}", "#semi=;,dot=.,comma=,"),
    ("{.who}", ".fred"),
    ("{.who,who}", ".fred.fred"),
    ("{.half,who}", ".50%25.fred"),
    ("www{.dom*}", "www.example.com"),
    ("X{.var}", "X.value"),
    ("X{.empty}", "X."),
    ("X{.undef}", "X"),
    ("X{.var:3}", "X.val"),
    ("X{.list}", "X.red,green,blue"),
    ("X{.list*}", "X.red.green.blue"),
    ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
    ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
    ("X{.empty_keys}", "X"),
    ("X{.empty_keys*}", "X"),
    ("{/who}", "/fred"),
    ("{/who,who}", "/fred/fred"),
    ("{/half,who}", "/50%25/fred"),
    ("{/who,dub}", "/fred/me%2Ftoo"),
    ("{/var}", "/value"),
    ("{/var,empty}", "/value/"),
    ("{/var,undef}", "/value"),
    ("{/var,x}/here", "/value/1024/here"),
    ("{/var:1,var}", "/v/value"),
    ("{/list}", "/red,green,blue"),
    ("{/list*}", "/red/green/blue"),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
    ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
    ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
    ("{;who}", ";who=fred"),
    ("{;half}", ";half=50%25"),
    ("{;empty}", ";empty"),
    ("{;v,empty,who}", ";v=6;empty;who=fred"),
    ("{;v,bar,who}", ";v=6;who=fred"),
    ("{;x,y}", ";x=1024;y=768"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"),
    ("{;x,y,undef}", ";x=1024;y=768"),
    ("{;hello:5}", ";hello=Hello"),
    ("{;list}", ";list=red,green,blue"),
    ("{;list*}", ";list=red;list=green;list=blue"),
    ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
    ("{?who}", "?who=fred"),
    ("{?half}", "?half=50%25"),
    ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("{?x,y,undef}", "?x=1024&y=768"),
    ("{?var:3}", "?var=val"),
    ("{?list}", "?list=red,green,blue"),
    ("{?list*}", "?list=red&list=green&list=blue"),
    ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
    ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
    ("{&who}", "&who=fred"),
    ("{&half}", "&half=50%25"),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ("{&x,y,undef}", "&x=1024&y=768"),
    ("{&var:3}", "&var=val"),
    ("{&list}", "&list=red,green,blue"),
    ("{&list*}", "&list=red&list=green&list=blue"),
    ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
    ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
]

SECTION_2_4: dict[str, Any] = {
    "var": "value",
    "semi": ";",
    "year": ["1965", "2000", "2012"],
    "dom": ["example", "com"],
    "address": {"city": "Newport Beach", "state": "CA"},
}


@pytest.mark.parametrize(("template", "uri"), SECTION_1_2)
def test_the_examples_of_the_levels(template: str, uri: str) -> None:
    """RFC 6570, section 1.2: levels 1 to 4 (RES-2)."""
    assert expand(template, LEVEL_4) == uri


@pytest.mark.parametrize(("template", "uri"), SECTION_3_2)
def test_the_examples_of_expression_expansion(template: str, uri: str) -> None:
    """RFC 6570, section 3.2: each operator (RES-2)."""
    assert expand(template, SECTION_3) == uri


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{var:20}", "value"),
        ("{var:3}", "val"),
        ("{semi}", "%3B"),
        ("{semi:2}", "%3B"),
        ("find{?year*}", "find?year=1965&year=2000&year=2012"),
        ("www{.dom*}", "www.example.com"),
        ("/mapper{?address*}", "/mapper?city=Newport%20Beach&state=CA"),
    ],
)
def test_the_examples_of_the_modifiers(template: str, uri: str) -> None:
    """RFC 6570, section 2.4: prefix and explode (RES-2)."""
    assert expand(template, SECTION_2_4) == uri


@pytest.mark.parametrize(
    ("template", "variables", "uri"),
    [
        ("a{x}", {"x": True}, "atrue"),
        ("a{x}", {"x": False}, "afalse"),
        ("a{x}", {"x": 12}, "a12"),
        ("a{x}", {"x": 1.5}, "a1.5"),
        ("a{x}", {"x": "é~€"}, "a%C3%A9~%E2%82%AC"),
        ("a{x:1}", {"x": "€uro"}, "a%E2%82%AC"),
        ("a{+x}", {"x": "50%25 %zz"}, "a50%25%20%25zz"),
        ("a{x}", {"x": []}, "a"),
        ("a{x}", {"x": [None]}, "a"),
        ("a{?x*}", {"x": {"a": None, "b": "", "c": 1}}, "a?b=&c=1"),
        ("a{;x*}", {"x": ["", "b"]}, "a;x;x=b"),
        ("é{x}", {"x": "1"}, "%C3%A91"),
        ("{a.b,a%20c}", {"a.b": "1", "a%20c": "2"}, "1,2"),
        ("a'b", {}, "a'b"),
        ("a%20b", {}, "a%20b"),
        ("", {}, ""),
    ],
)
def test_values_of_other_types_and_characters(template: str, variables: dict[str, Any], uri: str) -> None:
    """RFC 6570, section 2.3 and 3.2.1: what is undefined leaves no trace, all else is UTF-8, percent-encoded."""
    assert expand(template, variables) == uri


@pytest.mark.parametrize(
    "template",
    [
        "{",
        "}",
        "{}",
        "{a",
        "a}",
        "{a}}",
        "{{a}}",
        "{a b}",
        "{=a}",
        "{,a}",
        "{!a}",
        "{@a}",
        "{|a}",
        "{a:0}",
        "{a:10000}",
        "{a:x}",
        "{a*:3}",
        "{a,}",
        "{.}",
        "{a..b}",
        "{.a.}",
        "{é}",
        "a b",
        'a"b',
        "a<b",
        "a\\b",
        "a^b",
        "a|b",
        "a`b",
        "a%b",
        "a%2",
        "a\nb",
        "a\x7fb",
        "x" * 2049,
    ],
)
def test_what_is_no_template_is_refused(template: str) -> None:
    """RFC 6570, section 2: its grammar."""
    with pytest.raises(ResourceValidationError, match="uriTemplate"):
        expand(template, {"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{x:3}", ["a"]),
        ("{x}", [["a"]]),
        ("{x}", {"a": {}}),
        ("{x}", object()),
        ("{x}", "\ud800"),
        ("{x*}", ["a" * 1000] * 100),
    ],
)
def test_a_value_that_cannot_be_written_is_refused(template: str, value: object) -> None:
    """Ours: no half-written URI, and none of any length."""
    with pytest.raises(ResourceValidationError):
        expand(template, {"x": value})
