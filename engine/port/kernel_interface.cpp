// SPDX-License-Identifier: Apache-2.0
#include "port/kernel_interface.hpp"

#include <linux/ethtool.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "platform/error.hpp"
#include "port/ethtool.hpp"

namespace dutperf {

namespace {

class Socket {
public:
    Socket() : fd_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}
    ~Socket() {
        if (fd_ >= 0) close(fd_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    [[nodiscard]] int fd() const { return fd_; }

private:
    int fd_;
};

using Answer = std::array<char, 32768>;

// Returns the length of the answer, 0 if there is none.
std::size_t ask(const nlmsghdr& request, Answer& answer) {
    const Socket netlink;
    if (send(netlink.fd(), &request, request.nlmsg_len, 0) < 0) return 0;
    const ssize_t length = recv(netlink.fd(), answer.data(), answer.size(), 0);
    return length > 0 ? static_cast<std::size_t>(length) : 0;
}

// Asks for one interface. `elsewhere`: the network namespace where it is, by its number in this one.
std::size_t ask_link(unsigned index, std::optional<int> elsewhere, Answer& answer) {
    struct {
        nlmsghdr header;
        ifinfomsg body;
        rtattr attribute;
        std::int32_t elsewhere;
    } request{};
    request.header.nlmsg_len = elsewhere ? sizeof request : static_cast<unsigned>(NLMSG_LENGTH(sizeof request.body));
    request.attribute = {.rta_len = RTA_LENGTH(sizeof request.elsewhere), .rta_type = IFLA_TARGET_NETNSID};
    request.elsewhere = elsewhere.value_or(0);
    request.header.nlmsg_type = RTM_GETLINK;
    request.header.nlmsg_flags = NLM_F_REQUEST;
    request.body.ifi_index = static_cast<int>(index);
    return ask(request.header, answer);
}

// Asks for the root queue discipline of one interface. Without an echo only those who subscribed would get the answer;
// the acknowledgement comes where there is none.
std::size_t ask_discipline(unsigned index, Answer& answer) {
    struct {
        nlmsghdr header;
        tcmsg body;
    } request{};
    request.header = {.nlmsg_len = sizeof request,
                      .nlmsg_type = RTM_GETQDISC,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO | NLM_F_ACK,
                      .nlmsg_seq = 0,
                      .nlmsg_pid = 0};
    request.body.tcm_ifindex = static_cast<int>(index);
    request.body.tcm_parent = TC_H_ROOT;
    return ask(request.header, answer);
}

template <class T>
T value_of(const rtattr* attribute) {
    T value{};
    std::memcpy(&value, RTA_DATA(attribute), std::min(sizeof value, static_cast<std::size_t>(RTA_PAYLOAD(attribute))));
    return value;
}

void read_kind(const rtattr* info, KernelInterface& into) {
    auto length = static_cast<int>(RTA_PAYLOAD(info));
    for (const auto* at = static_cast<const rtattr*>(RTA_DATA(info)); RTA_OK(at, length); at = RTA_NEXT(at, length)) {
        if (at->rta_type == IFLA_INFO_KIND) into.kind = static_cast<const char*>(RTA_DATA(at));
    }
}

void read_xdp(const rtattr* xdp, KernelInterface& into) {
    auto length = static_cast<int>(RTA_PAYLOAD(xdp));
    for (const auto* at = static_cast<const rtattr*>(RTA_DATA(xdp)); RTA_OK(at, length); at = RTA_NEXT(at, length)) {
        if (at->rta_type == IFLA_XDP_PROG_ID) into.xdp_program = value_of<std::uint32_t>(at);
    }
}

std::optional<QueueDiscipline> read_discipline(const rtattr* statistics) {
    auto length = static_cast<int>(RTA_PAYLOAD(statistics));
    for (const auto* at = static_cast<const rtattr*>(RTA_DATA(statistics)); RTA_OK(at, length);
         at = RTA_NEXT(at, length)) {
        if ((at->rta_type & NLA_TYPE_MASK) != TCA_STATS_QUEUE) continue;
        const auto queue = value_of<gnet_stats_queue>(at);
        return QueueDiscipline{.requeues = queue.requeues, .waiting = queue.qlen};
    }
    return std::nullopt;
}

void read_attribute(const rtattr* attribute, KernelInterface& into) {
    switch (attribute->rta_type & NLA_TYPE_MASK) {
        case IFLA_IFNAME: into.name = static_cast<const char*>(RTA_DATA(attribute)); break;
        case IFLA_MTU: into.mtu = value_of<std::uint32_t>(attribute); break;
        case IFLA_CARRIER: into.carrier = value_of<std::uint8_t>(attribute) != 0; break;
        case IFLA_CARRIER_CHANGES: into.carrier_changes = value_of<std::uint32_t>(attribute); break;
        case IFLA_STATS64: into.counters = counters_of(value_of<rtnl_link_stats64>(attribute)); break;
        case IFLA_QDISC: into.qdisc = static_cast<const char*>(RTA_DATA(attribute)); break;
        case IFLA_LINKINFO: read_kind(attribute, into); break;
        case IFLA_XDP: read_xdp(attribute, into); break;
        case IFLA_LINK: into.other_end = value_of<std::uint32_t>(attribute); break;
        case IFLA_LINK_NETNSID: into.other_namespace = value_of<std::int32_t>(attribute); break;
        default: break;
    }
}

std::optional<ethtool_channels> channels_of(const std::string& name) {
    ethtool_channels channels{};
    channels.cmd = ETHTOOL_GCHANNELS;
    return ask_ethtool(name, &channels) ? std::optional(channels) : std::nullopt;
}

std::optional<KernelInterface> interface_at(unsigned index, std::optional<int> elsewhere) {
    KernelInterface interface;
    interface.index = index;
    Answer answer{};
    auto length = static_cast<unsigned>(ask_link(index, elsewhere, answer));
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
    if (length == 0 || !NLMSG_OK(header, length) || header->nlmsg_type != RTM_NEWLINK) return std::nullopt;
    const auto* body = static_cast<const ifinfomsg*>(NLMSG_DATA(header));
    interface.has_ethernet_frames = body->ifi_type == ARPHRD_ETHER || body->ifi_type == ARPHRD_LOOPBACK;
    interface.is_up = (body->ifi_flags & IFF_UP) != 0;
    interface.promiscuous_flag = (body->ifi_flags & IFF_PROMISC) != 0;
    auto rest = static_cast<int>(IFLA_PAYLOAD(header));
    for (const auto* at = IFLA_RTA(body); RTA_OK(at, rest); at = RTA_NEXT(at, rest)) read_attribute(at, interface);
    return interface;
}

}  // namespace

InterfaceCounters counters_of(const rtnl_link_stats64& statistics) {
    return {.not_received = statistics.rx_dropped + statistics.rx_missed_errors + statistics.rx_fifo_errors +
                            statistics.rx_over_errors,
            .receive_errors = statistics.rx_errors,
            .sent = statistics.tx_packets,
            .not_sent = statistics.tx_dropped};
}

std::optional<KernelInterface> kernel_interface(const std::string& name) {
    return kernel_interface(if_nametoindex(name.c_str()));
}

std::optional<KernelInterface> kernel_interface(unsigned index) {
    return index != 0 ? interface_at(index, {}) : std::nullopt;
}

std::optional<QueueDiscipline> queue_discipline(unsigned index) {
    Answer answer{};
    auto length = static_cast<unsigned>(ask_discipline(index, answer));
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
    if (length == 0 || !NLMSG_OK(header, length) || header->nlmsg_type != RTM_NEWQDISC) return std::nullopt;
    auto rest = static_cast<int>(TCA_PAYLOAD(header));
    for (const auto* at = TCA_RTA(static_cast<const tcmsg*>(NLMSG_DATA(header))); RTA_OK(at, rest);
         at = RTA_NEXT(at, rest)) {
        if ((at->rta_type & NLA_TYPE_MASK) == TCA_STATS2) return read_discipline(at);
    }
    return std::nullopt;
}

HeldFrames held_between(const QueueDiscipline& before, const QueueDiscipline& after) {
    // one that was replaced counts from 0 again
    const bool is_the_same = after.requeues >= before.requeues;
    return {.times = is_the_same ? after.requeues - before.requeues : after.requeues,
            .waiting = std::max(before.waiting, after.waiting)};
}

std::optional<unsigned> mtu_of_other_end(const KernelInterface& interface) {
    if (interface.kind != "veth" || interface.other_end == 0) return std::nullopt;
    const auto other = interface_at(interface.other_end, interface.other_namespace);
    return other ? std::optional(other->mtu) : std::nullopt;
}

std::string change_since(const KernelInterface& opened, const std::optional<KernelInterface>& now,
                         std::uint32_t needed_mtu) {
    if (!now)
        return opened.name + " is gone from the tester's network namespace: it was deleted, or moved to another one";
    if (now->name != opened.name) return opened.name + " was renamed to " + now->name;
    if (now->mtu < std::min<std::uint32_t>(needed_mtu, opened.mtu)) {
        return "the MTU of " + opened.name + " was lowered from " + std::to_string(opened.mtu) + " to " +
               std::to_string(now->mtu);
    }
    return {};
}

std::string interface_driver(const std::string& name) {
    ethtool_drvinfo about{};
    about.cmd = ETHTOOL_GDRVINFO;
    return ask_ethtool(name, &about) ? std::string(about.driver, strnlen(about.driver, sizeof about.driver)) : "";
}

std::optional<FlowControl> interface_flow_control(const std::string& name) {
    ethtool_pauseparam pause{};
    pause.cmd = ETHTOOL_GPAUSEPARAM;
    if (!ask_ethtool(name, &pause)) return std::nullopt;
    if (pause.rx_pause == 0) return pause.tx_pause == 0 ? FlowControl::off : FlowControl::transmit;
    return pause.tx_pause == 0 ? FlowControl::receive : FlowControl::full;
}

std::uint16_t xdp_queues(const std::string& name) {
    const auto channels = channels_of(name);
    return channels && channels->max_combined != 0 ? static_cast<std::uint16_t>(channels->combined_count)
                                                   : std::uint16_t{1};
}

std::uint16_t receive_queues(const std::string& name) {
    const auto channels = channels_of(name);
    return channels ? static_cast<std::uint16_t>(channels->combined_count + channels->rx_count) : std::uint16_t{1};
}

InterfaceWatch::InterfaceWatch() : fd_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)) {
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK;
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw Error("internal", "cannot subscribe to the interface events of the kernel (rtnetlink)");
}

InterfaceWatch::~InterfaceWatch() {
    if (fd_ >= 0) close(fd_);
}

InterfaceEvents InterfaceWatch::take(unsigned interface_index) {
    InterfaceEvents events;
    Answer messages{};
    for (;;) {
        const ssize_t length = recv(fd_, messages.data(), messages.size(), 0);
        if (length < 0 && errno == ENOBUFS) ++events.downs;
        if (length < 0 && (errno == ENOBUFS || errno == EINTR)) continue;
        if (length <= 0) return events;
        events.add(messages.data(), static_cast<std::size_t>(length), interface_index);
    }
}

// A bridge that an interface leaves says so by a message of another family.
void InterfaceEvents::add(const void* messages, std::size_t length, unsigned interface_index) {
    auto rest = static_cast<unsigned>(length);
    for (const auto* header = static_cast<const nlmsghdr*>(messages); NLMSG_OK(header, rest);
         header = NLMSG_NEXT(header, rest)) {
        const auto* body = static_cast<const ifinfomsg*>(NLMSG_DATA(header));
        if (body->ifi_index != static_cast<int>(interface_index) || body->ifi_family != AF_UNSPEC) continue;
        if (header->nlmsg_type == RTM_NEWLINK && (body->ifi_flags & IFF_UP) == 0) ++downs;
        if (header->nlmsg_type == RTM_DELLINK) removed = true;
    }
}

}  // namespace dutperf
