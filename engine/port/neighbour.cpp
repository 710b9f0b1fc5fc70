// SPDX-License-Identifier: Apache-2.0
#include "port/neighbour.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "frame/dissect.hpp"
#include "frame/layout.hpp"

namespace dutperf {

namespace {

constexpr std::uint16_t kVlanMask = 0x0FFF;  // of a tag's control information

namespace arp {
constexpr std::size_t kAt = kEthernetPayloadAt, kOperation = 6, kSenderMac = 8, kSenderIp = 14, kTargetMac = 18,
                      kTargetIp = 24, kSize = 28;
constexpr std::uint16_t kRequest = 1, kReply = 2;
}  // namespace arp

namespace ndp {
constexpr std::size_t kIpAt = kIpv6Layout.ip_at(), kAt = kIpv6Layout.transport_at();
constexpr std::size_t kFlags = 4, kTarget = 8, kOptions = 24, kSize = 32;  // with one link-layer address option
constexpr std::uint8_t kSolicitation = 135, kAdvertisement = 136, kSourceOption = 1, kTargetOption = 2;
constexpr std::uint8_t kHopLimit = 255;  // RFC 4861 7.1: any other value was forwarded and is ignored
constexpr std::uint8_t kSolicitedFlag = 0x40, kOverrideFlag = 0x20;  // RFC 4861 4.4
}  // namespace ndp

// RFC 3810 5.1, 5.2, behind a hop-by-hop header with a router alert.
namespace mld {
constexpr std::size_t kHopByHopSize = 8, kAt = ndp::kAt + kHopByHopSize, kRecords = 6, kHeaderSize = 8,
                      kRecordSize = 20, kGroup = 4;
constexpr std::array<std::uint8_t, kHopByHopSize> kRouterAlert{kProtocolIcmpv6, 0, 5, 2, 0, 0, 1, 0};
constexpr std::uint8_t kQuery = 130, kReport = 143, kExclude = 2, kHopLimit = 1, kHopByHop = 0;
constexpr std::size_t kRecordsOfFrame = 64;
constexpr Ipv6 kRouters{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16};
}  // namespace mld

template <class Address>
void write(const Address& address, std::uint8_t* at) {
    std::memcpy(at, address.data(), address.size());
}

FrameBytes ethernet_frame(const Mac& destination, const Mac& source, std::uint16_t type, std::size_t size) {
    FrameBytes frame(std::max(size, kMinEthernetLength));
    write(destination, &frame[ethernet::kDestination]);
    write(source, &frame[ethernet::kSource]);
    store_be16(&frame[ethernet::kType], type);
    return frame;
}

template <class Address>
bool stands_at(const Address& address, const std::uint8_t* at) {
    return std::memcmp(address.data(), at, address.size()) == 0;
}

struct ArpMessage {
    std::uint16_t operation;
    Ipv4 sender;
    Mac target_mac;
    Ipv4 target;
};

FrameBytes arp_frame(const Mac& own, const Mac& destination, const ArpMessage& message) {
    FrameBytes frame = ethernet_frame(destination, own, ethernet::kTypeArp, arp::kAt + arp::kSize);
    std::uint8_t* at = &frame[arp::kAt];
    store_be32(at, 0x00010800);  // Ethernet, IPv4
    store_be16(at + 4, 0x0604);  // length of their addresses
    store_be16(at + arp::kOperation, message.operation);
    write(own, at + arp::kSenderMac);
    write(message.sender, at + arp::kSenderIp);
    write(message.target_mac, at + arp::kTargetMac);
    write(message.target, at + arp::kTargetIp);
    return frame;
}

struct NdpMessage {
    std::uint8_t type, flags, option;  // option 0: none
    Ipv6 source, target;
};

FrameBytes ndp_frame(const Mac& own, const Mac& destination_mac, const Ipv6& destination, const NdpMessage& message) {
    const std::uint16_t size = message.option == 0 ? ndp::kOptions : ndp::kSize;
    FrameBytes frame = ethernet_frame(destination_mac, own, ethernet::kTypeIpv6, ndp::kAt + size);
    std::uint8_t* ip = &frame[ndp::kIpAt];
    ip[0] = ipv6::kFirstByte;
    store_be16(ip + ipv6::kPayloadLength, size);
    ip[ipv6::kNextHeader] = kProtocolIcmpv6;
    ip[ipv6::kHopLimit] = ndp::kHopLimit;
    write(message.source, ip + ipv6::kSource);
    write(destination, ip + ipv6::kDestination);
    std::uint8_t* icmp = &frame[ndp::kAt];
    icmp[0] = message.type;
    icmp[ndp::kFlags] = message.flags;
    write(message.target, icmp + ndp::kTarget);
    if (message.option != 0) {
        icmp[ndp::kOptions] = message.option;
        icmp[ndp::kOptions + 1] = 1;  // eight bytes
        write(own, icmp + ndp::kOptions + 2);
    }
    const std::uint64_t sum =
        pseudo_header_sum(ip + ipv6::kSource, 2 * sizeof(Ipv6), size, kProtocolIcmpv6) + checksum_add(icmp, size);
    store(icmp + 2, checksum_finish(sum));
    return frame;
}

bool is_arp(const std::uint8_t* frame, std::size_t length, std::uint16_t operation) {
    return length >= arp::kAt + arp::kSize && load_be16(frame + ethernet::kType) == ethernet::kTypeArp &&
           load_be16(frame + arp::kAt + arp::kOperation) == operation;
}

bool is_ndp(const std::uint8_t* frame, std::size_t length, std::uint8_t type) {
    const std::uint8_t* ip = frame + ndp::kIpAt;
    return length >= ndp::kAt + ndp::kOptions && load_be16(frame + ethernet::kType) == ethernet::kTypeIpv6 &&
           ip[ipv6::kNextHeader] == kProtocolIcmpv6 && ip[ipv6::kHopLimit] == ndp::kHopLimit && frame[ndp::kAt] == type;
}

// A message as it is without the VLAN tags in front of it. The room is for the longest that is read.
class Untagged {
public:
    Untagged(const std::uint8_t* frame, std::size_t length) : data_(frame), size_(length) {
        const std::size_t at = network_of(frame, length).at;
        if (at <= ethernet::kSize) return;
        tags_ = {frame + ethernet::kType, frame + at - kTypeSize};
        std::copy_n(frame, ethernet::kType, copy_.begin());
        const std::size_t rest = std::min(length - at + kTypeSize, copy_.size() - ethernet::kType);
        std::copy_n(frame + at - kTypeSize, rest, copy_.begin() + ethernet::kType);
        data_ = copy_.data();
        size_ = ethernet::kType + rest;
    }
    Untagged(const Untagged&) = delete;
    Untagged& operator=(const Untagged&) = delete;
    ~Untagged() = default;

    [[nodiscard]] const std::uint8_t* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::span<const std::uint8_t> tags() const { return tags_; }

private:
    static constexpr std::size_t kTypeSize = 2;
    std::array<std::uint8_t, ndp::kAt + ndp::kSize> copy_{};
    std::span<const std::uint8_t> tags_;
    const std::uint8_t* data_;
    std::size_t size_;
};

FrameBytes with_tags(FrameBytes frame, std::span<const std::uint8_t> tags) {
    frame.insert(frame.begin() + ethernet::kType, tags.begin(), tags.end());
    return frame;
}

std::optional<Mac> arp_sender(std::uint16_t operation, const Ipv4& sender, const Untagged& message) {
    const std::uint8_t* arp = message.data() + arp::kAt;
    if (!is_arp(message.data(), message.size(), operation) || !stands_at(sender, arp + arp::kSenderIp))
        return std::nullopt;
    return read_address<Mac>(arp + arp::kSenderMac);
}

// From the option of that type if the message has it, otherwise the frame's source address.
Mac link_layer_address(std::uint8_t type, const Untagged& message) {
    const std::uint8_t* option = message.data() + ndp::kAt + ndp::kOptions;
    const bool has_option = message.size() >= ndp::kAt + ndp::kSize && option[0] == type && option[1] == 1;
    return has_option ? read_address<Mac>(option + 2) : read_address<Mac>(message.data() + ethernet::kSource);
}

std::optional<NeighbourMessage> read_message(const Untagged& message) {
    const std::uint8_t *arp = message.data() + arp::kAt, *icmp = message.data() + ndp::kAt;
    const auto is_request = is_arp(message.data(), message.size(), arp::kRequest);
    if (is_request || is_arp(message.data(), message.size(), arp::kReply)) {
        return NeighbourMessage{.is_request = is_request,
                                .sender = ip_of(read_address<Ipv4>(arp + arp::kSenderIp)),
                                .target = ip_of(read_address<Ipv4>(arp + arp::kTargetIp)),
                                .mac = read_address<Mac>(arp + arp::kSenderMac)};
    }
    if (is_ndp(message.data(), message.size(), ndp::kSolicitation)) {
        return NeighbourMessage{.is_request = true,
                                .sender = ip_of(read_address<Ipv6>(message.data() + ndp::kIpAt + ipv6::kSource)),
                                .target = ip_of(read_address<Ipv6>(icmp + ndp::kTarget)),
                                .mac = link_layer_address(ndp::kSourceOption, message)};
    }
    if (is_ndp(message.data(), message.size(), ndp::kAdvertisement)) {
        return NeighbourMessage{.is_request = false,
                                .sender = ip_of(read_address<Ipv6>(icmp + ndp::kTarget)),
                                .target = {},
                                .mac = link_layer_address(ndp::kTargetOption, message)};
    }
    return std::nullopt;
}

FrameBytes arp_reply(const Host& host, const NeighbourMessage& request) {
    return arp_frame(host.mac, request.mac,
                     {.operation = arp::kReply,
                      .sender = request.target.ipv4(),
                      .target_mac = request.mac,
                      .target = request.sender.ipv4()});
}

FrameBytes advertisement(const Host& host, const NeighbourMessage& request, const Mac& to) {
    // duplicate address detection: the reply goes to all nodes (RFC 4861 7.2.4)
    const bool unspecified = request.sender.is_unspecified();
    const Ipv6 all_nodes{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const auto flags =
        static_cast<std::uint8_t>(unspecified ? ndp::kOverrideFlag : ndp::kSolicitedFlag | ndp::kOverrideFlag);
    const NdpMessage message{.type = ndp::kAdvertisement,
                             .flags = flags,
                             .option = ndp::kTargetOption,
                             .source = request.target.bytes,
                             .target = request.target.bytes};
    return unspecified ? ndp_frame(host.mac, multicast_mac(all_nodes), all_nodes, message)
                       : ndp_frame(host.mac, to, request.sender.bytes, message);
}

bool is_query(const Untagged& frame) {
    const std::uint8_t* ip = frame.data() + ndp::kIpAt;
    return frame.size() > mld::kAt && load_be16(frame.data() + ethernet::kType) == ethernet::kTypeIpv6 &&
           ip[ipv6::kNextHeader] == mld::kHopByHop && frame.data()[ndp::kAt] == kProtocolIcmpv6 &&
           frame.data()[mld::kAt] == mld::kQuery;
}

// Addresses of a range that differ in the last three bytes have groups of their own. The range counts through the bits
// of its mask: through those of the last three bytes from the first address on, up to the last one unless bits before
// them count as well.
void add_groups(const AddressRange<Ipv6>& range, std::set<Ipv6>& groups) {
    constexpr std::size_t kFrom = 13;
    const auto last_bytes = [](const Ipv6& address) {
        return static_cast<std::uint32_t>(address[kFrom] << 16U | address[kFrom + 1] << 8U | address[kFrom + 2]);
    };
    const std::uint32_t mask = last_bytes(range.mask), fixed = last_bytes(range.first) & ~mask;
    const std::uint32_t first = last_bytes(range.first) & mask, last = last_bytes(range.last) & mask;
    bool one_block = true;  // of addresses that differ in the last three bytes alone
    for (std::size_t i = 0; i < kFrom; ++i) one_block &= ((range.first[i] ^ range.last[i]) & range.mask[i]) == 0;
    std::uint32_t number = first;
    do {
        Ipv6 address = range.first;
        for (std::size_t i = 0; i < 3; ++i)
            address[kFrom + i] = static_cast<std::uint8_t>((fixed | number) >> (16 - 8 * i));
        groups.insert(solicited_node(address));
        if (one_block && number == last) return;
        number = (number - mask) & mask;
    } while (number != first && groups.size() < kMostGroups);
}

FrameBytes listener_report(const Host& host, std::span<const Ipv6> groups) {
    const std::size_t size = mld::kHeaderSize + groups.size() * mld::kRecordSize;
    FrameBytes frame = ethernet_frame(multicast_mac(mld::kRouters), host.mac, ethernet::kTypeIpv6, mld::kAt + size);
    std::uint8_t *ip = &frame[ndp::kIpAt], *icmp = &frame[mld::kAt];
    ip[0] = ipv6::kFirstByte;
    store_be16(ip + ipv6::kPayloadLength, static_cast<std::uint16_t>(mld::kHopByHopSize + size));
    ip[ipv6::kNextHeader] = mld::kHopByHop;
    ip[ipv6::kHopLimit] = mld::kHopLimit;
    write(link_local(host.mac), ip + ipv6::kSource);
    write(mld::kRouters, ip + ipv6::kDestination);
    write(mld::kRouterAlert, &frame[ndp::kAt]);
    icmp[0] = mld::kReport;
    store_be16(icmp + mld::kRecords, static_cast<std::uint16_t>(groups.size()));
    for (std::size_t i = 0; i < groups.size(); ++i) {
        std::uint8_t* record = icmp + mld::kHeaderSize + i * mld::kRecordSize;
        record[0] = mld::kExclude;  // of no source: all frames to the group
        write(groups[i], record + mld::kGroup);
    }
    const std::uint64_t sum =
        pseudo_header_sum(ip + ipv6::kSource, 2 * sizeof(Ipv6), static_cast<std::uint16_t>(size), kProtocolIcmpv6) +
        checksum_add(icmp, size);
    store(icmp + 2, checksum_finish(sum));
    return frame;
}

std::optional<FrameBytes> answer(const Host& host, const Untagged& frame) {
    const auto message = read_message(frame);
    if (!message || !message->is_request) return std::nullopt;
    // Of the other addresses one may be the DUT's after all: it would give up an address that somebody else has.
    if (!is_own(host, message->target) && (message->wants_no_answer() || !answers_for(host, message->target)))
        return std::nullopt;
    if (!message->target.is_ipv6) return arp_reply(host, *message);
    return advertisement(host, *message, read_address<Mac>(frame.data() + ethernet::kSource));
}

}  // namespace

std::uint16_t vlan_of(const std::uint8_t* frame, std::size_t length) {
    const bool tagged = network_of(frame, length).at > ethernet::kSize && length >= ethernet::kSize;
    return tagged ? load_be16(frame + ethernet::kSize) & kVlanMask : std::uint16_t{0};
}

bool is_seen_by(const Host& host, const std::uint8_t* frame, std::size_t length) {
    return host.other_vlans.empty() ||
           std::ranges::find(host.other_vlans, vlan_of(frame, length)) == host.other_vlans.end();
}

FrameBytes in_vlan(FrameBytes frame, std::uint16_t vlan) {
    if (vlan == 0) return frame;
    std::array<std::uint8_t, ethernet::kVlanTagSize> tag{};
    store_be16(tag.data(), ethernet::kTypeVlan);
    store_be16(&tag[2], vlan);
    return with_tags(std::move(frame), tag);
}

std::optional<NeighbourMessage> read_neighbour_message(const std::uint8_t* frame, std::size_t length) {
    return read_message(Untagged(frame, length));
}

bool is_of_tester(const Host& host, const Mac& mac) {
    return mac == host.mac || std::ranges::find(host.other_hosts, mac) != host.other_hosts.end();
}

bool is_own(const Host& host, const IpAddress& address) {
    if (!address.is_ipv6) return host.ipv4 == address.ipv4();
    return host.ipv6 == address.bytes || link_local(host.mac) == address.bytes;
}

bool answers_for(const Host& host, const IpAddress& address) {
    if (is_own(host, address)) return true;
    if (address.is_ipv6) return host.dut.ipv6 != address.bytes && host.others.contain(address.bytes);
    return host.dut.ipv4 != address.ipv4() && host.others.contain(address.ipv4());
}

std::vector<FrameBytes> answers(const Host& host, const std::uint8_t* frame, std::size_t length) {
    const Untagged message(frame, length);
    std::vector<FrameBytes> untagged, replies;
    if (const auto reply = answer(host, message)) untagged = {*reply};
    if (is_query(message)) untagged = listener_reports(host);
    for (const FrameBytes& reply : untagged) {
        if (!message.tags().empty() || host.vlans.empty()) {
            replies.push_back(with_tags(reply, message.tags()));
            continue;
        }
        for (const std::uint16_t vlan : host.vlans) replies.push_back(in_vlan(reply, vlan));
    }
    return replies;
}

bool is_listener_query(const std::uint8_t* frame, std::size_t length) { return is_query(Untagged(frame, length)); }

std::vector<FrameBytes> listener_reports(const Host& host) {
    if (!host.ipv6) return {};
    std::set<Ipv6> groups{solicited_node(*host.ipv6), solicited_node(link_local(host.mac))};
    for (const AddressRange<Ipv6>& range : host.others.ipv6) add_groups(range, groups);
    const std::vector<Ipv6> all(groups.begin(), groups.end());
    std::vector<FrameBytes> reports;
    for (std::size_t from = 0; from < all.size(); from += mld::kRecordsOfFrame) {
        const std::size_t count = std::min(mld::kRecordsOfFrame, all.size() - from);
        reports.push_back(listener_report(host, std::span(all).subspan(from, count)));
    }
    return reports;
}

FrameBytes arp_request(const Host& host, const Ipv4& target) {
    return arp_frame(host.mac, kBroadcastMac,
                     {.operation = arp::kRequest, .sender = *host.ipv4, .target_mac = {}, .target = target});
}

FrameBytes neighbour_solicitation(const Host& host, const Ipv6& target) {
    const Ipv6 group = solicited_node(target);
    return ndp_frame(
        host.mac, multicast_mac(group), group,
        {.type = ndp::kSolicitation, .flags = 0, .option = ndp::kSourceOption, .source = *host.ipv6, .target = target});
}

FrameBytes address_probe(const Host& host, const IpAddress& address) {
    if (!address.is_ipv6) {
        return arp_frame(host.mac, kBroadcastMac,
                         {.operation = arp::kRequest, .sender = {}, .target_mac = {}, .target = address.ipv4()});
    }
    const Ipv6 group = solicited_node(address.bytes);
    return ndp_frame(host.mac, multicast_mac(group), group,
                     {.type = ndp::kSolicitation, .flags = 0, .option = 0, .source = {}, .target = address.bytes});
}

std::vector<FrameBytes> address_probes(const Host& host) {
    std::vector<FrameBytes> probes;
    if (host.ipv4) probes.push_back(address_probe(host, ip_of(*host.ipv4)));
    if (host.ipv6) probes.push_back(address_probe(host, ip_of(*host.ipv6)));
    return probes;
}

std::optional<Mac> arp_reply_mac(const Ipv4& target, const std::uint8_t* frame, std::size_t length) {
    return arp_sender(arp::kReply, target, Untagged(frame, length));
}

std::optional<Mac> advertised_mac(const Ipv6& target, const std::uint8_t* frame, std::size_t length) {
    const Untagged message(frame, length);
    const bool advertised = is_ndp(message.data(), message.size(), ndp::kAdvertisement) &&
                            stands_at(target, message.data() + ndp::kAt + ndp::kTarget);
    return advertised ? std::optional(link_layer_address(ndp::kTargetOption, message)) : std::nullopt;
}

std::optional<Mac> arp_requester_mac(const Ipv4& requester, const std::uint8_t* frame, std::size_t length) {
    return arp_sender(arp::kRequest, requester, Untagged(frame, length));
}

std::optional<Mac> solicitor_mac(const Ipv6& requester, const std::uint8_t* frame, std::size_t length) {
    const Untagged message(frame, length);
    const bool solicited = is_ndp(message.data(), message.size(), ndp::kSolicitation) &&
                           stands_at(requester, message.data() + ndp::kIpAt + ipv6::kSource);
    return solicited ? std::optional(link_layer_address(ndp::kSourceOption, message)) : std::nullopt;
}

}  // namespace dutperf
