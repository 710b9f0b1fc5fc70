#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A DUT with four ports between namespaces, as a person makes it (by_hand.sh has two).
#
#   four_ports.sh router NAME             the kernel routes IPv4 between four networks
#   four_ports.sh bridge NAME             the kernel bridges
#   four_ports.sh hub NAME                the same without learning: each frame leaves by all other ports
#   four_ports.sh cables NAME             only cables: for a switch that is a program
#   four_ports.sh lose NAME FROM TO N     the router drops every N-th frame from the port FROM to TO, and counts those that it drops
#   four_ports.sh astray NAME TO OUT      the bridge sends frames for the tester's port TO out of the port OUT
#   four_ports.sh down NAME
#
# NAME is the tester's namespace with the ports a to d; the DUT's is NAME-dut with the ports da to dd.
set -eu

what=$1 name=$2 dut=$2-dut
in_dut() { ip netns exec "$dut" "$@"; }

cables() {
    ip netns add "$name"
    ip netns add "$dut"
    in_dut sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    for port in a b c d; do
        ip -n "$name" link add name "$port" type veth peer name "d$port" netns "$dut"
        ip -n "$name" link set dev "$port" up
        ip -n "$dut" link set dev "d$port" up
    done
}

case $what in
    router)
        cables
        number=0
        for port in a b c d; do
            ip -n "$dut" address add "198.18.$number.1/24" dev "d$port"
            number=$((number + 1))
        done
        ;;
    cables)
        cables
        ;;
    bridge | hub)
        cables
        ip -n "$dut" link add switch type bridge mcast_snooping 0
        for port in a b c d; do
            ip -n "$dut" link set dev "d$port" master switch
            # before the bridge is up: it would learn from the neighbour discovery of the tester's namespace
            [ "$what" = bridge ] || bridge -n "$dut" link set dev "d$port" learning off
        done
        ip -n "$dut" link set switch up
        ;;
    lose)
        in_dut nft -f - <<RULES
table inet loss {
  counter dropped { }
  chain forwarded {
    type filter hook forward priority 0; policy accept;
    iifname "d$3" oifname "d$4" numgen inc mod $5 0 counter name dropped drop
  }
}
RULES
        ;;
    astray)
        mac=$(ip -n "$name" -json link show dev "$3" | sed 's/.*"address":"\([0-9a-f:]*\)".*/\1/')
        in_dut bridge fdb replace "$mac" dev "d$4" master static sticky
        ;;
    down)
        ip netns del "$dut" || true
        ip netns del "$name" || true
        ;;
esac
