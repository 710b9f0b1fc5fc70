#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Namespaces as a person makes them: a DUT between two veth pairs, with none of the labs' code and none of its care for the cables.
#
#   by_hand.sh router NAME [CORE]     the kernel routes IPv4; CORE: receive packet steering puts its work there, else it is done wherever frames are sent
#   by_hand.sh nat NAME [CORE]        the kernel is a NAT44, its outside address is on the right
#   by_hand.sh bridge NAME [CORE]     the kernel bridges, whatever the frames are
#   by_hand.sh tayga NAME [CORE]      TAYGA between IPv6 (left) and IPv4 (right), on CORE, else wherever the scheduler puts it
#   by_hand.sh dns64 NAME             the DUT has addresses for a DNS64 server, IPv6 on the left and IPv4 on the right, and no server
#   by_hand.sh limit NAME FPS BUCKET [SIDE]  the DUT forwards so many packets a second (from its port west or east), and
#                                            a bucket of packets beyond them
#   by_hand.sh down NAME              everything is removed
#
# NAME is the tester's namespace, with its ports eth1 and eth2; the DUT's is NAME-dut.
set -eu

what=$1 name=$2 dut=$2-dut
in_dut() { ip netns exec "$dut" "$@"; }

cables() {
    ip netns add "$name"
    ip netns add "$dut"
    ip -n "$name" link add eth1 type veth peer name west netns "$dut"
    ip -n "$name" link add eth2 type veth peer name east netns "$dut"
    for port in eth1 eth2; do ip -n "$name" link set "$port" up; done
    in_dut sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
    for port in lo west east; do ip -n "$dut" link set "$port" up; done
}

steer() { # the DUT's kernel work goes to a core
    for port in west east; do in_dut sh -c "printf %x $((1 << $1)) > /sys/class/net/$port/queues/rx-0/rps_cpus"; done
}

router() {
    cables
    ip -n "$dut" address add 198.18.0.1/24 dev west
    ip -n "$dut" address add 198.19.0.1/24 dev east
    [ -z "$1" ] || steer "$1"
}

dns64() {
    cables
    ip -n "$dut" address add 2001:2::1/64 dev west nodad
    ip -n "$dut" address add 198.19.0.1/24 dev east
}

nat() {
    router "$1"
    in_dut nft -f - <<RULES
table ip masquerading {
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "east" masquerade
  }
}
RULES
}

bridge() {
    cables
    ip -n "$dut" link add switch type bridge mcast_snooping 0
    for port in west east; do ip -n "$dut" link set "$port" master switch; done
    ip -n "$dut" link set switch up
    [ -z "$1" ] || steer "$1"
}

tayga() {
    cables
    [ -z "$1" ] || steer "$1"
    ip -n "$dut" address add 2001:2::1/64 dev west nodad
    ip -n "$dut" address add 198.19.0.1/24 dev east
    files=/run/dutperf-by-hand-$name
    mkdir -p "$files"
    cat > "$files/tayga.conf" <<TAYGA
tun-device siit0
ipv4-addr 198.18.255.254
ipv6-addr 2001:2:0:2000::1
data-dir $files
map 198.18.0.2 2001:2::2
map 198.19.0.2 2001:2:0:1000::2
TAYGA
    in_dut tayga --config "$files/tayga.conf" --mktun > "$files/log" 2>&1
    ip -n "$dut" link set siit0 up
    ip -n "$dut" route add 198.18.0.0/16 dev siit0
    ip -n "$dut" route add 2001:2:0:1000::/56 dev siit0
    in_dut ${1:+taskset --cpu-list "$1"} setsid tayga --config "$files/tayga.conf" -d < /dev/null > "$files/log" 2>&1 &
    for _ in $(seq 50); do
        ip -n "$dut" link show siit0 | grep -q LOWER_UP && break
        sleep 0.1
    done
    for pid in $(ip netns pids "$dut"); do echo -20 > "/proc/$pid/autogroup"; done # as on a machine without other work
}

limit() {
    in_dut nft -f - <<RULES
table inet truth {
  chain forwarded$3 {
    type filter hook forward priority 0; policy accept;
    ${3:+iifname "$3"} limit rate over $1/second burst $2 packets drop
  }
}
RULES
}

down() {
    for namespace in "$name" "$dut"; do
        [ -e "/run/netns/$namespace" ] || continue
        ip netns pids "$namespace" | xargs -r kill 2> /dev/null || true
        ip netns delete "$namespace"
    done
    rm -rf "/run/dutperf-by-hand-$name"
}

shift 2
case $what in
    router | nat | bridge | tayga | dns64) "$what" "${1:-}" ;;
    limit) limit "$1" "$2" "${3:-}" ;;
    down) down ;;
    *) sed -n '3,12s/^# *//p' "$0" >&2; exit 2 ;;
esac
