#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A CLAT and a PLAT (464XLAT), two TAYGAs in namespaces as a person makes them, with none of the labs' code: both in a row, or one alone.
#
#   464xlat_by_hand.sh up NAME both|clat|plat CONFIGURATION [CORE]   the configuration is that of both TAYGAs; CORE: theirs, and their kernels'
#   464xlat_by_hand.sh down NAME                                     everything is removed
#
# NAME is the tester's namespace, with its ports eth1 (left) and eth2 (right).
set -eu

what=$1 name=$2
files=/run/dutperf-by-hand-$name

cable() { # port of the tester, namespace and port at its other end
    ip -n "$name" link add "$1" mtu 1520 type veth peer name "$3" mtu 1520 netns "$2"
    ip -n "$name" link set "$1" up
}

translator() { # namespace, port and address of the tester's side, own address of the link between both, core
    ip netns exec "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0
    ip netns exec "$1" tayga --config "$files/tayga.conf" --mktun > "$files/$1.log" 2>&1
    for port in lo "$2" wan nat64; do ip -n "$1" link set "$port" up; done
    ip -n "$1" link set nat64 mtu 1520
    ip -n "$1" address add "$3" dev "$2"
    ip -n "$1" address add "$4" dev wan nodad
    [ -z "$5" ] || for port in "$2" wan; do
        ip netns exec "$1" sh -c "printf %x $((1 << $5)) > /sys/class/net/$port/queues/rx-0/rps_cpus"
    done
    ip netns exec "$1" ${5:+taskset --cpu-list "$5"} setsid tayga --config "$files/tayga.conf" -d < /dev/null > "$files/$1.log" 2>&1 &
    for _ in $(seq 50); do
        ip -n "$1" link show nat64 | grep -q LOWER_UP && break
        sleep 0.1
    done
    for _ in $(seq 50); do # until the kernel has made sure of its link-local addresses
        [ -n "$(ip -n "$1" -6 address show tentative)" ] || break
        sleep 0.1
    done
    for pid in $(ip netns pids "$1"); do echo -20 > "/proc/$pid/autogroup"; done # as on a machine without other work
}

clat() {
    translator "$name-clat" lan 198.18.0.1/24 2001:2:0:4000::1/64 "$1"
    ip -n "$name-clat" route add 198.19.0.0/24 dev nat64
    ip -n "$name-clat" route add 2001:2:0:3000::/120 dev nat64
    ip -n "$name-clat" route add 2001:2:0:6464::/96 via 2001:2:0:4000::2
}

plat() {
    translator "$name-plat" internet 198.19.0.1/24 2001:2:0:4000::2/64 "$1"
    ip -n "$name-plat" route add 198.18.0.0/24 dev nat64
    ip -n "$name-plat" route add 2001:2:0:6464::/96 dev nat64
    ip -n "$name-plat" route add 2001:2:0:3000::/120 via 2001:2:0:4000::1
}

up() { # which, configuration, core
    mkdir -p "$files"
    sed "s|^data-dir .*|data-dir $files|" "$2" > "$files/tayga.conf"
    for namespace in "$name" "$name-clat" "$name-plat"; do ip netns add "$namespace"; done
    case $1 in
        both)
            cable eth1 "$name-clat" lan
            ip -n "$name-clat" link add wan mtu 1520 type veth peer name wan mtu 1520 netns "$name-plat"
            cable eth2 "$name-plat" internet
            clat "$3"
            plat "$3"
            ;;
        clat)
            cable eth1 "$name-clat" lan
            cable eth2 "$name-clat" wan
            clat "$3"
            ;;
        plat)
            cable eth1 "$name-plat" wan
            cable eth2 "$name-plat" internet
            plat "$3"
            ;;
    esac
}

down() {
    for namespace in "$name" "$name-clat" "$name-plat"; do
        [ -e "/run/netns/$namespace" ] || continue
        ip netns pids "$namespace" | xargs -r kill 2> /dev/null || true
        ip netns delete "$namespace"
    done
    rm -rf "$files"
}

case $what in
    up) up "$3" "$4" "${5:-}" ;;
    down) down ;;
    *) sed -n '3,8s/^# *//p' "$0" >&2; exit 2 ;;
esac
