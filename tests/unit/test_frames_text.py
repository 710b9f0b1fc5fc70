# SPDX-License-Identifier: Apache-2.0
"""The text of header stacks: what it means, its canonical form, and what is said of a wrong one."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.errors import DutperfError
from dutperf.frames import KINDS, FrameError, Stack
from dutperf.frames.options import IPV4_OPTIONS, IPV6_OPTIONS, TCP_OPTIONS
from frame_stacks import stacks

EXAMPLES = (
    "eth/vlan(id=100,pcp=3)/ipv6(dscp=46)/hop_by_hop/dest_options(size=16)/udp(source=random(1024,65535),destination=7)",
    "eth/vlan(id=100,type=0x88a8)/vlan(id=5)/mpls(label=16)/mpls(label=17)/ipv4(options=rr(3))/tcp(flags=SA)",
    "eth/ipv6/routing(segments=[2001:2::5,2001:2::6])/fragment/udp",
    "eth/ipv4/udp/vxlan(vni=7)/eth/ipv4/udp",
    "eth/ipv6/udp/gtpu(teid=1)/ipv4/udp",
    "eth/ipv4/gre(key=5,checksum=yes)/ipv6/udp",
    "eth/ipv4/icmp",
    "ipv4(destination=increment(198.19.0.2,count=1000,by=flow))/udp",
)
MEANINGS = (
    ("ipv4/udp", "eth/ipv4/udp"),
    (" eth / ipv4 ( ttl = 0x40 , dscp=46 ) / udp ", "eth/ipv4(dscp=46,ttl=64)/udp"),
    ("ipv4()/udp", "eth/ipv4/udp"),
    ("eth(type=34916)", "eth(type=0x8864)"),
    ("ipv6(source=2001:2:0:0::0002)", "eth/ipv6(source=2001:2::2)"),
    ("eth(source=02:AB:00:00:00:01)", "eth(source=02:ab:00:00:00:01)"),
    ("ipv4/tcp(flags=AS)", "eth/ipv4/tcp(flags=SA)"),
    ("ipv4/tcp(flags=0x12)", "eth/ipv4/tcp(flags=SA)"),
    ("ipv4/tcp(flags=list(S,SA,0))", "eth/ipv4/tcp(flags=list(S,SA,0))"),
    ("ipv4(options=[rr(3)])", "eth/ipv4(options=rr(3))"),
    ("ipv4(options=raw(0102))", "eth/ipv4(options=raw(0x0102))"),
    ("ipv4(id=increment(65533))", "eth/ipv4(id=increment(65533,65535))"),
    ("ipv4(id=decrement(9))", "eth/ipv4(id=decrement(9,0))"),
    ("ipv4(id=increment(1,10,step=4))", "eth/ipv4(id=increment(1,9,step=4))"),
    ("ipv4(id=increment(1,step=4,count=1))", "eth/ipv4(id=increment(1,1))"),
    ("ipv4(id=decrement(10,count=3,step=5,by=flow))", "eth/ipv4(id=decrement(10,0,step=5,by=flow))"),
    ("ipv4(id=increment(5,7,by=frame))", "eth/ipv4(id=increment(5,7))"),
    ("ipv4/gre(checksum=no)/ipv4", "eth/ipv4/gre/ipv4"),
    ("ipv4/udp(checksum=no)", "eth/ipv4/udp(checksum=0x0000)"),
    ("ipv4/udp(checksum=yes)/vxlan/eth", "eth/ipv4/udp(checksum=yes)/vxlan/eth"),
    ("ipv6/routing(type=3,data=0x00000001)/udp", "eth/ipv6/routing(type=3,data=0x00000001)/udp"),
)
WRONG = (
    ("", 1, None, "expected a header, not the text's end"),
    ("eth//ipv4", 5, None, "expected a header, not '/'"),
    ("eth/ipv4/", 10, None, "expected a header, not the text's end"),
    ("eth/ipv4 udp", 10, None, "expected '/' or '(', not 'udp'"),
    ("eth/ipv4(id=3", 9, None, "'(' is not closed"),
    ("ipv4(id=3 ttl=3)", 11, None, "expected ',' or ')', not 'ttl'"),
    ("ipv4(options=[rr(3)", 14, None, "'[' is not closed"),
    ("ipv4(ttl)", 6, None, "a field needs a value: ttl=VALUE"),
    ("ipv4(ttl=)", 10, None, "expected a value, not ')'"),
    ("ipv4(ttl=5$)", 11, None, "expected ',' or ')', not '$'"),
    ("ipv4(x(1)=5)", 6, None, "a name stands before '='"),
    ("ipv4(ttl=a(b(c(d(e(f))))))", 18, None, "too many values within values"),
    ("eth/ipv5", 5, (2, "ipv5"), "unknown header 'ipv5'; did you mean ipv6?"),
    ("eth/ipv4/qqq", 10, (3, "qqq"), "unknown header 'qqq'; there are eth, vlan,"),
    ("ipv4(tll=5)", 6, (1, "ipv4"), "unknown field 'tll'; did you mean ttl?"),
    ("ipv4/gre(_reserved=1)", 10, (2, "gre"), "unknown field '_reserved'"),
    ("ipv4(ttl=5,ttl=6)", 12, (1, "ipv4"), "ttl is given twice"),
    ("eth/vlan(id=5000)/ipv4", 13, (2, "vlan"), "id: 5000 does not fit in 12 bits (0 to 4095)"),
    ("ipv4(ttl=x)", 10, (1, "ipv4"), "ttl: expected a number, not 'x'"),
    ("ipv4(ttl=[3])", 10, (1, "ipv4"), "ttl: expected a number, not a list in brackets"),
    ("ipv4(source=2001:2::2)", 13, (1, "ipv4"), "source: expected an IPv4 address, not '2001:2::2'"),
    ("eth(source=02:00:00:00:00)", 12, (1, "eth"), "source: expected a MAC address, not '02:00:00:00:00'"),
    ("ipv4/tcp(flags=SX)", 16, (2, "tcp"), "flags: expected letters of FSRPAUECN or a number, not 'SX'"),
    ("ipv4/tcp(flags=SS)", 16, (2, "tcp"), "flags: expected letters of FSRPAUECN or a number, not 'SS'"),
    ("ipv4(ttl=randum(1,2))", 10, (1, "ipv4"), "ttl: unknown way to vary 'randum'; did you mean random?"),
    ("ipv4(ttl=random(1))", 10, (1, "ipv4"), "ttl: random has 2 values, not 1"),
    ("ipv4(ttl=random(2,1))", 10, (1, "ipv4"), "ttl: the first number is greater than the last one"),
    ("ipv4(ttl=increment(2,1))", 10, (1, "ipv4"), "ttl: the first number is greater than the last one"),
    ("ipv4(ttl=decrement(1,2))", 10, (1, "ipv4"), "ttl: the first number is less than the last one"),
    ("ipv4(ttl=increment(1,2,count=2))", 30, (1, "ipv4"), "ttl: either the last number or count, not both"),
    ("ipv4(ttl=increment(250,count=10))", 30, (1, "ipv4"), "ttl: 10 values do not fit in 8 bits; at most 6 do"),
    ("ipv4(ttl=increment(1,step=0))", 27, (1, "ipv4"), "ttl: expected a number from 1 on"),
    ("ipv4(ttl=increment(1,step=1,step=2))", 29, (1, "ipv4"), "ttl: step is given twice"),
    ("ipv4(ttl=list(1,2,by=x))", 22, (1, "ipv4"), "ttl: by is frame or flow, not 'x'"),
    ("ipv4(ttl=list())", 10, (1, "ipv4"), "ttl: list has 1 to 65,536 values, not 0"),
    (
        f"ipv4(id=list({','.join(['7'] * 65_537)}))",
        9,
        (1, "ipv4"),
        "id: list has 1 to 65,536 values, not 65,537",
    ),
    ("ipv4(ttl=list(random(1,2)))", 15, (1, "ipv4"), "ttl: expected a number, which does not vary here"),
    ("ipv4(checksum=no)", 15, (1, "ipv4"), "checksum: this checksum cannot be left out"),
    ("ipv4(options=foo)", 14, (1, "ipv4"), "options: unknown option 'foo'; there are nop, router_alert,"),
    ("ipv4(options=rr)", 14, (1, "ipv4"), "options: the option rr has 1 arguments, not 0"),
    ("ipv4(options=rr(0))", 14, (1, "ipv4"), "options: the option rr has at least 1 entry"),
    ("ipv4(options=rr(3,by=flow))", 19, (1, "ipv4"), "options: the option rr has no by="),
    ("ipv4(options=raw(0x123))", 18, (1, "ipv4"), "options: expected bytes in hexadecimal"),
    ("ipv4(options=raw)", 14, (1, "ipv4"), "options: the option raw has one argument"),
    ("ipv4(options=[rr(9),nop,nop])", 1, (1, "ipv4"), "the options have 44 bytes; at most 40 are possible"),
    ("ipv4/tcp(options=raw(0x" + 41 * "01" + "))", 6, (2, "tcp"), "the options have 44 bytes; at most 40 are possible"),
    ("ipv6/dest_options(size=12)", 6, (2, "dest_options"), "size=12 should be a multiple of 8, from 8 to 2048 bytes"),
    ("ipv6/routing/udp", 6, (2, "routing"), "needs either segments=[…] or data=0x…"),
    ("ipv6/routing(segments=2001:2::5)", 23, (2, "routing"), "segments: segments are a list in brackets"),
    ("ipv6/routing(segments=[])", 23, (2, "routing"), "segments: segments are 1 to 127 addresses, not 0"),
    ("ipv6/routing(segments=[2001:2::5],tlvs=0x0400)", 6, (2, "routing"), "tlvs has 2 bytes; multiples of 8 are"),
    ("ipv4/udp/gtpu(next_extension=0x85)/ipv4", 10, (3, "gtpu"), "extensions have to be a chain"),
    ("ipv4/udp/gtpu(next_extension=1,extensions=0x01000001)/ipv4", 10, (3, "gtpu"), "extensions have to be a chain"),
    ("ipv4/udp/gtpu(next_extension=1,extensions=0x02000000)/ipv4", 10, (3, "gtpu"), "extensions have to be a chain"),
    ("ipv4/udp/gtpu(extensions=0x01000000)/ipv4", 10, (3, "gtpu"), "extensions have to be a chain"),
    ("ipv6/routing(data=0x0000)", 6, (2, "routing"), "data has 2 bytes; 4, 12, 20 … 2044 are possible"),
    ("ipv6/routing(data=0x00000000,tag=1)", 6, (2, "routing"), "tag is a field of segment routing"),
    ("eth/udp", 5, (2, "udp"), "cannot follow eth; it carries vlan, mpls, ipv4, ipv6"),
    ("udp", 1, (1, "udp"), "cannot follow eth; it carries vlan, mpls, ipv4, ipv6"),
    ("ipv4/esp/udp", 10, (3, "udp"), "cannot follow esp, which carries none"),
    ("ipv6/dest_options/hop_by_hop", 19, (3, "hop_by_hop"), "cannot follow dest_options"),
    ("ipv4/hop_by_hop", 6, (2, "hop_by_hop"), "cannot follow ipv4"),
    ("ipv4/udp/vxlan", 10, (3, "vxlan"), "cannot be the last header; it carries eth"),
    ("vlan/vlan/vlan/vlan/ipv4", 16, (4, "vlan"), "at most 3 tags are possible"),
    ("ipv4(ihl=random(5,6))/udp", 6, (1, "ipv4"), "ihl cannot vary: the layout of the frame depends on it"),
    ("ipv4(length=list(5,6))/udp", 6, (1, "ipv4"), "length cannot vary"),
    ("ipv4(protocol=random(5,6))/udp", 6, (1, "ipv4"), "protocol cannot vary here: it says which header follows"),
    ("eth(type=random(5,6))/vlan/ipv4", 5, (1, "eth"), "type cannot vary here: it says which header follows"),
    ("ipv4/udp(destination=random(1,2))/gtpu", 10, (2, "udp"), "destination cannot vary here"),
    (
        "ipv6/routing(segments=[2001:2::5],segments_left=random(0,1))/udp",
        35,
        (2, "routing"),
        "segments_left cannot vary",
    ),
)


@pytest.mark.parametrize("text", EXAMPLES)
def test_canonical_text_is_the_same_stack(text: str) -> None:
    stack = Stack.parse(text)
    assert Stack.parse(str(stack)) == stack
    assert str(stack).startswith("eth")


@pytest.mark.parametrize(("text", "canonical"), MEANINGS)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Stack.parse(text)) == canonical
    assert str(Stack.parse(canonical)) == canonical


@pytest.mark.parametrize(("text", "position", "header", "message"), WRONG)
def test_an_error_is_a_sentence_with_its_place(
    text: str, position: int, header: tuple[int, str] | None, message: str
) -> None:
    with pytest.raises(FrameError) as caught:
        Stack.parse(text)
    error = caught.value
    assert isinstance(error, DutperfError)
    assert (error.position, (error.header, error.name)) == (position, header or (None, None))
    assert error.message.startswith(message)
    place = f"character {position}" if header is None else f"header {header[0]} ({header[1]}), character {position}"
    assert str(error) == f"{place}: {error.message}"


@pytest.mark.parametrize(
    "text",
    [
        "eth(type=random(0x600,0xffff))",
        "vlan/mpls(s=random(0,1))",
        "ipv4(protocol=list(253,254))",
        "eth(type=list(0x88b5,0x88b6))/vlan",
        "ipv4/udp(destination=random(1,65535))",
        "ipv6/dest_options(next_header=list(253,254))",
    ],
)
def test_a_type_may_vary_in_the_last_header(text: str) -> None:
    assert Stack.parse(text)


@given(stacks())
def test_every_stack_is_the_one_of_its_text(stack: Stack) -> None:
    assert Stack.parse(str(stack)) == stack
    assert str(Stack.parse(str(stack))) == str(stack)


@given(st.text(alphabet=string.ascii_lowercase[:6] + "ipv46udthlmos0123x:.,=()[]/ _", max_size=60))
def test_any_text_is_a_stack_or_an_error_with_its_position(text: str) -> None:
    assert position_of_error(text) in range(len(text) + 2)


@given(st.sampled_from(EXAMPLES), st.data())
def test_a_changed_text_is_a_stack_or_an_error_with_its_position(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    changed = (
        text[:at]
        + data.draw(st.sampled_from(["", "/", "(", ")", ",", "=", "[", "]", "9", "x", " ", "\n", "é"]))
        + text[at + 1 :]
    )
    assert position_of_error(changed) in range(len(changed) + 2)


def position_of_error(text: str) -> int | None:
    """Zero for a stack. Any other exception than a FrameError fails the test."""
    try:
        return 0 if Stack.parse(text) else None
    except FrameError as error:
        return error.position or None


def test_the_names_of_options_are_those_of_the_headers() -> None:
    assert KINDS["ipv4"].field("options").kinds is IPV4_OPTIONS
    assert KINDS["tcp"].field("options").kinds is TCP_OPTIONS
    assert KINDS["dest_options"].field("options").kinds is KINDS["hop_by_hop"].field("options").kinds is IPV6_OPTIONS
