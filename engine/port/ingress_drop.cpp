// SPDX-License-Identifier: Apache-2.0
#include "port/ingress_drop.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace dutperf {

namespace {

// Messages to nf_tables, which take effect together.
class Batch {
public:
    Batch() { begin(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, AF_UNSPEC, NFNL_SUBSYS_NFTABLES); }

    void begin(int type, int flags, int family, std::uint16_t resource) {
        finish();
        message_ = bytes_.size();
        const nlmsghdr header{.nlmsg_len = 0,
                              .nlmsg_type = static_cast<std::uint16_t>(type),
                              .nlmsg_flags = static_cast<std::uint16_t>(flags),
                              .nlmsg_seq = 1,
                              .nlmsg_pid = 0};
        const nfgenmsg about{
            .nfgen_family = static_cast<std::uint8_t>(family), .version = NFNETLINK_V0, .res_id = htons(resource)};
        append(&header, sizeof header);
        append(&about, sizeof about);
    }
    // A request for the family netdev.
    void request(int type) {
        begin((NFNL_SUBSYS_NFTABLES << 8) | type, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK, NFPROTO_NETDEV, 0);
        ++requests_;
    }
    void text(int attribute, std::string_view value) {
        std::string ended(value);
        add(attribute, ended.c_str(), ended.size() + 1);
    }
    void number(int attribute, std::uint32_t value) {
        value = htonl(value);
        add(attribute, &value, sizeof value);
    }
    // Attributes until end_nested() are within this one.
    void begin_nested(int attribute) {
        nested_ = bytes_.size();
        add(attribute | NLA_F_NESTED, nullptr, 0);
    }
    void end_nested() { write_length(nested_); }

    // Sends the batch. Returns 0, or the error of the first request that was not taken.
    int send_to(int netlink) {
        begin(NFNL_MSG_BATCH_END, NLM_F_REQUEST, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
        finish();
        if (send(netlink, bytes_.data(), bytes_.size(), 0) < 0) return errno;
        int error = 0;
        while (requests_ > 0 && error == 0) error = answer(netlink);
        return error;
    }

private:
    int answer(int netlink) {
        alignas(nlmsghdr) std::array<char, 8192> answers{};
        const ssize_t received = recv(netlink, answers.data(), answers.size(), 0);
        if (received < 0) return errno;
        auto rest = static_cast<unsigned>(received);
        for (const auto* header = reinterpret_cast<const nlmsghdr*>(answers.data()); NLMSG_OK(header, rest);
             header = NLMSG_NEXT(header, rest)) {
            if (header->nlmsg_type != NLMSG_ERROR) continue;
            if (const int error = static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error; error != 0) return -error;
            --requests_;
        }
        return 0;
    }
    void add(int attribute, const void* value, std::size_t size) {
        const nlattr header{.nla_len = static_cast<std::uint16_t>(sizeof header + size),
                            .nla_type = static_cast<std::uint16_t>(attribute)};
        append(&header, sizeof header);
        append(value, size);
        bytes_.resize(NLMSG_ALIGN(bytes_.size()));
    }
    void append(const void* value, std::size_t size) {
        const auto* from = static_cast<const char*>(value);
        bytes_.insert(bytes_.end(), from, from + size);
    }
    void write_length(std::size_t attribute) {
        const auto length = static_cast<std::uint16_t>(bytes_.size() - attribute);
        std::memcpy(bytes_.data() + attribute, &length, sizeof length);
    }
    void finish() {
        const auto length = static_cast<std::uint32_t>(bytes_.size() - message_);
        if (length != 0) std::memcpy(bytes_.data() + message_, &length, sizeof length);
    }

    std::vector<char> bytes_;
    std::size_t message_ = 0, nested_ = 0;
    int requests_ = 0;
};

bool forwards(const std::string& interface, const char* version) {
    char value = '0';
    std::ifstream("/proc/sys/net/" + std::string(version) + "/conf/" + interface + "/forwarding") >> value;
    return value != '0';
}

bool has_address(const std::string& interface) {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return false;
    bool found = false;
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
        found |= one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET && interface == one->ifa_name;
    freeifaddrs(all);
    return found;
}

}  // namespace

IngressDrop::IngressDrop(const std::string& interface)
    : netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER)) {
    const std::string table = "dutperf_" + interface;
    Batch batch;
    batch.request(NFT_MSG_NEWTABLE);
    batch.text(NFTA_TABLE_NAME, table);
    batch.number(NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
    batch.request(NFT_MSG_NEWCHAIN);
    batch.text(NFTA_CHAIN_TABLE, table);
    batch.text(NFTA_CHAIN_NAME, "received");
    batch.text(NFTA_CHAIN_TYPE, "filter");
    batch.number(NFTA_CHAIN_POLICY, NF_DROP);
    batch.begin_nested(NFTA_CHAIN_HOOK);
    batch.number(NFTA_HOOK_HOOKNUM, NF_NETDEV_INGRESS);
    batch.number(NFTA_HOOK_PRIORITY, 0);
    batch.text(NFTA_HOOK_DEV, interface);
    batch.end_nested();
    if (const int error = batch.send_to(netlink_); error != 0) error_ = std::strerror(error);
}

IngressDrop::~IngressDrop() {
    if (netlink_ >= 0) close(netlink_);
}

std::string what_the_stack_does(const std::string& interface) {
    if (forwards(interface, "ipv4") || forwards(interface, "ipv6")) return "forwards the frames that it receives";
    return has_address(interface) ? "answers frames to the address that it has" : "";
}

}  // namespace dutperf
