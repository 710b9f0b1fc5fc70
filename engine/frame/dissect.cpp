// SPDX-License-Identifier: Apache-2.0
#include "frame/dissect.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "frame/checksum.hpp"
#include "frame/tag.hpp"

namespace dutperf {

namespace {

constexpr int kMostHeaders = 32;
constexpr std::size_t kAddress4 = 4, kAddress6 = 16;
constexpr std::size_t kGtpuTunnel = 4;  // where the identifier of the tunnel is, which decides nothing

bool is_vlan(std::uint16_t type) {
    return type == ethernet::kTypeVlan || type == ethernet::kTypeServiceVlan || type == ethernet::kTypeOldVlan;
}

// What the walk expects next.
enum class Next : std::uint8_t { nothing, ethernet, mpls, ip, ipv4, ipv6, protocol, gre, vxlan, gtpu };

// Takes no notes of what is read.
struct NoNotes {
    void same(std::size_t /*at*/, std::size_t /*size*/) const {}
    void sum(const Reading::Sum& /*sum*/) const {}
    static constexpr bool kTaken = false;
};

struct Notes {
    explicit Notes(Reading& reading) : reading_(&reading) {}
    void same(std::size_t at, std::size_t size) const { reading_->same.push_back({at, at + size}); }
    void sum(const Reading::Sum& sum) const { reading_->sums.push_back(sum); }
    static constexpr bool kTaken = true;

private:
    Reading* reading_;
};

// Each step notes the bytes that decide what is read next, and each sum.
template <class N>
class Walk {
public:
    Walk(const std::uint8_t* frame, std::size_t length, N notes)
        : frame_(frame), length_(length), end_(length), outer_end_(length), notes_(notes) {}

    InnermostPacket innermost() {
        for (int headers = 0; next_ != Next::nothing && headers < kMostHeaders; ++headers) step();
        return ip_at_ == 0 ? InnermostPacket{{}, false}
                           : InnermostPacket{{frame_ + ip_at_, length_ - ip_at_}, frame_[ip_at_] >> 4U == 6};
    }

    Dissected result(std::span<const std::uint16_t> from_end) {
        for (int headers = 0; next_ != Next::nothing && headers < kMostHeaders; ++headers) {
            step();
            if (is_tag(at_, end_)) return found(at_);
        }
        if (no_tag_at_end_) return {};
        for (const std::size_t end : {outer_end_, length_}) {
            for (const std::uint16_t distance : from_end) {
                if (distance <= end && is_tag(end - distance, end)) return found(end - distance);
            }
        }
        return {};
    }

private:
    [[nodiscard]] std::size_t left() const { return end_ - at_; }
    [[nodiscard]] const std::uint8_t* here() const { return frame_ + at_; }
    [[nodiscard]] bool is_tag(std::size_t at, std::size_t end) const {
        return at + kTagSize <= end && has_signature(frame_ + at);
    }

    Dissected found(std::size_t at) const {
        notes_.same(at, tag::kHighAt);
        return {.tag = frame_ + at,
                .intact = intact_ && !unfinished_ && !zero_,
                .unfinished = intact_ && unfinished_,
                .zero = intact_ && zero_,
                .unsummed = unsummed_,
                .source = at_addresses_[0],
                .destination = at_addresses_[1],
                .payload = at_addresses_[1].size() != 0 && at <= end_ ? end_ - at : 0,
                .behind_udp = at == udp_end_,
                .outer_destination = outermost_ == at_addresses_[1] ? Range{} : outermost_};
    }

    // Notes `size` bytes of the header here.
    void note(std::size_t offset, std::size_t size) const { notes_.same(at_ + offset, size); }

    void require(bool condition) { intact_ &= condition; }

    // Goes on behind a header of `size` bytes.
    void go_on(std::size_t size, Next next) {
        at_ += size;
        next_ = next;
    }

    // Whether a header of `size` bytes is whole; if not, the walk ends.
    bool has(std::size_t size) {
        if (left() >= size) return true;
        require(false);
        next_ = Next::nothing;
        return false;
    }

    void step() {
        switch (next_) {
            case Next::ethernet: return take_ethernet();
            case Next::mpls: return take_mpls();
            case Next::ip: return take_by_version();
            case Next::ipv4: return take_ipv4();
            case Next::ipv6: return take_ipv6();
            case Next::protocol: return take_protocol();
            case Next::gre: return take_gre();
            case Next::vxlan:
                if (has(vxlan::kSize)) go_on(vxlan::kSize, Next::ethernet);
                return;
            case Next::gtpu: return take_gtpu();
            case Next::nothing: return;
        }
    }

    static Next of_type(std::uint16_t type) {
        switch (type) {
            case ethernet::kTypeIpv4: return Next::ipv4;
            case ethernet::kTypeIpv6: return Next::ipv6;
            case ethernet::kTypeMpls:
            case ethernet::kTypeMplsMulticast: return Next::mpls;
            case ethernet::kTypeBridged: return Next::ethernet;
            default: return Next::nothing;
        }
    }

    void take_ethernet() {
        if (!has(ethernet::kSize)) return;
        at_addresses_ = {};  // those so far are of another link
        const Network network = network_of(here(), left());
        for (std::size_t type = ethernet::kType; type < network.at; type += ethernet::kVlanTagSize) note(type, 2);
        go_on(network.at, of_type(network.type));
    }

    // An IP packet or a frame may follow the bottom of the stack: its first bits tell.
    void take_mpls() {
        if (!has(mpls::kSize)) return;
        note(2, 1);
        const bool bottom = (here()[2] & mpls::kBottom) != 0;
        go_on(mpls::kSize, bottom ? Next::ip : Next::mpls);
    }

    void take_by_version() {
        note(0, 1);
        const int version = left() > 0 ? here()[0] >> 4U : 0;
        next_ = version == 4 ? Next::ipv4 : version == 6 ? Next::ipv6 : Next::ethernet;
        step();
    }

    // The packet ends `size` bytes from here.
    void set_end(std::size_t size) {
        require(size <= left());
        end_ = std::min(end_, at_ + size);
        if (!within_ip_) outer_end_ = end_;
        within_ip_ = true;
    }

    void take_ipv4() {
        if (!has(ipv4::kSize)) return;
        ip_at_ = at_;
        const std::uint8_t* ip = here();
        const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU};
        require(ip[0] >> 4U == 4 && header >= ipv4::kSize);
        if (header < ipv4::kSize || !has(header)) return stop();
        require(load_be16(ip + ipv4::kLength) >= header);
        set_end(std::max<std::size_t>(load_be16(ip + ipv4::kLength), header));
        require(checksum_fold(checksum_add(ip, header)) == 0xFFFF);
        note_ipv4(header);
        if ((load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) != 0) return stop_at_fragment();
        set_addresses(ip + ipv4::kSource, final_destination4(ip, header), kAddress4);
        over_ipv6_ = false;
        protocol_ = ip[ipv4::kProtocol];
        go_on(header, Next::protocol);
    }

    void note_ipv4(std::size_t header) const {
        note(0, 1);
        note(ipv4::kLength, 2);
        note(ipv4::kFragment, 2);
        note(ipv4::kProtocol, 1);
        note(ipv4::kSize, header - ipv4::kSize);
        if constexpr (N::kTaken) notes_.sum({.ranges = {{at_, at_ + header}}});
    }

    void set_addresses(const std::uint8_t* source, const std::uint8_t* destination, std::size_t size) {
        addresses_ = checksum_add(source, size) + checksum_add(destination, size);
        const auto from = static_cast<std::size_t>(source - frame_),
                   to = static_cast<std::size_t>(destination - frame_);
        at_addresses_ = {Range{from, from + size}, Range{to, to + size}};
        if (outermost_.size() == 0) outermost_ = at_addresses_[1];
    }

    // A source route that is not at its end has the destination as its last address (RFC 791).
    static const std::uint8_t* final_destination4(const std::uint8_t* ip, std::size_t header) {
        constexpr std::uint8_t kEnd = 0, kNothing = 1, kLoose = 131, kStrict = 137;
        for (std::size_t at = ipv4::kSize; at + 3 <= header && ip[at] != kEnd;) {
            const std::size_t size = ip[at] == kNothing ? 1 : ip[at + 1];
            const bool route = ip[at] == kLoose || ip[at] == kStrict;
            if (size == 0 || at + size > header) break;
            if (route && size >= 3 + kAddress4 && ip[at + 2] <= size) return ip + at + size - kAddress4;
            at += size;
        }
        return ip + ipv4::kDestination;
    }

    void take_ipv6() {
        if (!has(ipv6::kSize)) return;
        ip_at_ = at_;
        const std::uint8_t* ip = here();
        require(ip[0] >> 4U == 6);
        note(0, 1);
        note(ipv6::kPayloadLength, 2);
        note(ipv6::kNextHeader, 1);
        set_end(ipv6::kSize + load_be16(ip + ipv6::kPayloadLength));
        const std::uint8_t* destination = ip + ipv6::kDestination;
        protocol_ = ip[ipv6::kNextHeader];
        at_ += ipv6::kSize;
        while (is_extension(protocol_)) {
            if (is_tag(at_, end_)) return stop();
            if (!has(ipv6::kExtensionUnit)) return;
            const std::uint8_t* extension = here();
            const std::size_t size = extension_size(extension);
            if (!has(size)) return;
            note(0, ipv6::kSegmentsLeft + 1);  // next header, length, and what decides in routing and fragment headers
            if (protocol_ == ipv6::kFragment && (load_be16(extension + 2) & ipv6::kFragmentMask) != 0)
                return stop_at_fragment();
            if (protocol_ == ipv6::kRouting && extension[ipv6::kRoutingType] == ipv6::kSegmentRouting &&
                extension[ipv6::kSegmentsLeft] != 0 && size >= ipv6::kSegments + kAddress6)
                destination = extension + ipv6::kSegments;
            protocol_ = extension[0];
            at_ += size;
        }
        set_addresses(ip + ipv6::kSource, destination, kAddress6);
        over_ipv6_ = true;
        next_ = Next::protocol;
    }

    static bool is_extension(std::uint8_t protocol) {
        return protocol == ipv6::kHopByHop || protocol == ipv6::kRouting || protocol == ipv6::kFragment ||
               protocol == ipv6::kDestinationOptions || protocol == kProtocolAh;
    }

    [[nodiscard]] std::size_t extension_size(const std::uint8_t* extension) const {
        if (protocol_ == ipv6::kFragment) return ipv6::kExtensionUnit;
        if (protocol_ == kProtocolAh) return authentication_size(extension);
        return ipv6::kExtensionUnit * (std::size_t{extension[1]} + 1);
    }

    static std::size_t authentication_size(const std::uint8_t* header) {
        return ah::kUnit * (std::size_t{header[ah::kLength]} + ah::kUncounted);
    }

    void stop() { next_ = Next::nothing; }
    void stop_at_fragment() {
        no_tag_at_end_ = true;
        stop();
    }

    void take_protocol() {
        switch (protocol_) {
            case kProtocolUdp: return take_udp();
            case kProtocolTcp: return take_tcp();
            case kProtocolIcmp:
            case kProtocolIcmpv6: return take_icmp();
            case kProtocolGre: next_ = Next::gre; return step();
            case kProtocolAh: return take_authentication();
            case kProtocolEsp:
                if (has(esp::kSize)) go_on(esp::kSize, Next::nothing);
                return;
            case kProtocolMobility: return take_mobility();
            case kProtocolIpv4: next_ = Next::ipv4; return step();
            case kProtocolIpv6: next_ = Next::ipv6; return step();
            case kProtocolMpls: next_ = Next::mpls; return step();
            case kProtocolEthernet: next_ = Next::ethernet; return step();
            default: return stop();
        }
    }

    // Over IPv4; over IPv6 it is an extension header.
    void take_authentication() {
        if (!has(ah::kSmallest)) return;
        const std::size_t size = authentication_size(here());
        if (!has(size)) return;
        note(0, ah::kLength + 1);
        protocol_ = here()[ah::kNextHeader];
        go_on(size, Next::protocol);
    }

    // Its checksum covers the header alone, with a pseudo-header.
    void take_mobility() {
        if (!has(mobility::kSmallest)) return;
        const std::size_t size = mobility::kUnit * (std::size_t{here()[mobility::kLength]} + 1);
        if (!has(size)) return;
        const std::uint64_t pseudo =
            std::uint64_t{swap16(static_cast<std::uint16_t>(size))} + swap16(kProtocolMobility);
        require(checksum_fold(addresses_ + pseudo + checksum_add(here(), size)) == 0xFFFF);
        note(0, mobility::kLength + 1);
        if constexpr (N::kTaken)
            notes_.sum({.ranges = {at_addresses_[0], at_addresses_[1], {at_, at_ + size}}, .plus = pseudo});
        go_on(size, Next::nothing);
    }

    // Of the rest of the packet.
    [[nodiscard]] std::uint64_t sum_here() const { return checksum_add(here(), left()); }
    [[nodiscard]] std::uint64_t pseudo_header() const {
        return std::uint64_t{swap16(static_cast<std::uint16_t>(left()))} + swap16(protocol_);
    }
    [[nodiscard]] std::uint64_t transport_sum() const { return addresses_ + pseudo_header() + sum_here(); }

    void require_transport_sum(std::uint16_t checksum) {
        if (checksum_fold(transport_sum()) == 0xFFFF) return;
        require(checksum == checksum_fold(addresses_ + pseudo_header()));
        unfinished_ = true;
    }

    void note_sum() const {
        if constexpr (N::kTaken) notes_.sum({.ranges = {{at_, end_}}});
    }
    void note_transport_sum(std::size_t not_zero_at = 0) const {
        if constexpr (N::kTaken) {
            notes_.sum({.ranges = {at_addresses_[0], at_addresses_[1], {at_, end_}},
                        .plus = pseudo_header(),
                        .not_zero_at = not_zero_at});
        }
    }

    void take_udp() {
        if (!has(udp::kSize)) return;
        const Next tunnel = of_port(load_be16(here() + udp::kDestinationPort));
        const std::uint16_t checksum = load<std::uint16_t>(here() + udp::kChecksum);
        require(load_be16(here() + udp::kLength) == left());
        // RFC 768; RFC 6935: over IPv6 for tunnels only. Where the tag follows, the port was drawn and names no tunnel.
        const bool may_be_absent = !over_ipv6_ || (tunnel != Next::nothing && !is_tag(at_ + udp::kSize, end_));
        if (checksum != 0) {
            require_transport_sum(checksum);
        } else if (!may_be_absent) {
            unsummed_ = checksum_fold(transport_sum()) != 0xFFFF;
            require(!unsummed_);
            zero_ = true;
        }
        note_udp(checksum == 0);
        go_on(udp::kSize, tunnel);
        udp_end_ = at_;
    }

    // The port decides nothing where the tag follows and there is a checksum.
    void note_udp(bool without_checksum) const {
        note(udp::kLength, 2);
        if (without_checksum || !is_tag(at_ + udp::kSize, end_)) note(udp::kDestinationPort, 2);
        if (without_checksum)
            note(udp::kChecksum, 2);
        else
            note_transport_sum(over_ipv6_ ? at_ + udp::kChecksum : 0);
    }

    static Next of_port(std::uint16_t port) {
        switch (port) {
            case udp::kVxlan: return Next::vxlan;
            case udp::kGtpU: return Next::gtpu;
            case udp::kMpls: return Next::mpls;
            case udp::kGre: return Next::gre;
            default: return Next::nothing;
        }
    }

    void take_tcp() {
        if (!has(tcp::kSize)) return;
        const std::size_t header = 4 * std::size_t{static_cast<std::uint8_t>(here()[tcp::kDataOffset] >> 4U)};
        require(header >= tcp::kSize);
        require_transport_sum(load<std::uint16_t>(here() + tcp::kChecksum));
        note(tcp::kDataOffset, 1);
        note_transport_sum();
        if (header < tcp::kSize || !has(header)) return stop();
        go_on(header, Next::nothing);
    }

    void take_icmp() {
        if (!has(icmp::kSize)) return;
        require(checksum_fold(protocol_ == kProtocolIcmpv6 ? transport_sum() : sum_here()) == 0xFFFF);
        note(icmp::kType, 1);
        protocol_ == kProtocolIcmpv6 ? note_transport_sum() : note_sum();
        no_tag_at_end_ |= here()[icmp::kType] != icmp::kEchoRequest && here()[icmp::kType] != icmp::kEchoReply &&
                          here()[icmp::kType] < icmp::kEchoRequest6;
        go_on(icmp::kSize, Next::nothing);
    }

    void take_gre() {
        if (!has(gre::kSize)) return;
        note(0, gre::kSize);
        const std::uint16_t flags = load_be16(here());
        std::size_t size = gre::kSize;
        for (const std::uint16_t part : {gre::kChecksumPresent, gre::kKeyPresent, gre::kSequencePresent})
            size += (flags & part) != 0 ? gre::kOptional : 0;
        if (!has(size)) return;
        if ((flags & gre::kChecksumPresent) != 0) {
            require(checksum_fold(sum_here()) == 0xFFFF);
            note_sum();
        }
        go_on(size, of_type(load_be16(here() + gre::kType)));
    }

    void take_gtpu() {
        if (!has(gtpu::kSize)) return;
        const std::uint8_t* header = here();
        require(std::size_t{load_be16(header + gtpu::kLength)} + gtpu::kSize == left());
        std::size_t size = gtpu::kSize + ((header[0] & gtpu::kOptionalPresent) != 0 ? gtpu::kOptional : 0);
        if (!has(size)) return;
        // each extension header has its size in units of four bytes, and the type of the next one as its last byte
        bool more = (header[0] & gtpu::kExtension) != 0 && header[size - 1] != 0;
        while (more) {
            if (!has(size + gtpu::kOptional)) return;
            const std::size_t extension = gtpu::kOptional * std::size_t{header[size]};
            if (extension == 0 || !has(size + extension)) return stop();
            size += extension;
            more = header[size - 1] != 0;
        }
        note(0, kGtpuTunnel);
        note(gtpu::kSize, size - gtpu::kSize);
        const bool packet = header[gtpu::kMessage] == gtpu::kPacket;
        go_on(size, packet ? Next::ip : Next::nothing);
    }

    const std::uint8_t* frame_;
    std::size_t length_, at_ = 0, end_, outer_end_, udp_end_ = 0, ip_at_ = 0;
    Next next_ = Next::ethernet;
    bool intact_ = true, unfinished_ = false, zero_ = false, unsummed_ = false, within_ip_ = false, over_ipv6_ = false;
    bool no_tag_at_end_ = false;  // an error message, which ends like the packet that it quotes; or a fragment
    std::uint8_t protocol_ = 0;
    std::uint64_t addresses_ = 0;          // the part of a pseudo-header sum
    Range outermost_{};                    // destination of the outermost IP packet
    std::array<Range, 2> at_addresses_{};  // source and destination of the innermost IP packet
    [[no_unique_address]] N notes_;
};

}  // namespace

Network network_of(const std::uint8_t* frame, std::size_t length) {
    std::size_t at = ethernet::kSize;
    if (length < at) return {length, 0};
    std::uint16_t type = load_be16(frame + ethernet::kType);
    while (is_vlan(type) && at + ethernet::kVlanTagSize <= length) {
        at += ethernet::kVlanTagSize;
        type = load_be16(frame + at - 2);
    }
    return {at, type};
}

InnermostPacket innermost_packet(const std::uint8_t* frame, std::size_t length) {
    return Walk<NoNotes>(frame, length, {}).innermost();
}

Dissected dissect(const std::uint8_t* frame, std::size_t length, std::span<const std::uint16_t> from_end) {
    return Walk<NoNotes>(frame, length, {}).result(from_end);
}

Dissected dissect(const std::uint8_t* frame, std::size_t length, std::span<const std::uint16_t> from_end,
                  Reading& reading) {
    return Walk<Notes>(frame, length, Notes(reading)).result(from_end);
}

}  // namespace dutperf
