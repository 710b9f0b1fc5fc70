// SPDX-License-Identifier: Apache-2.0
// The Responder's state table (RFC 9693 section 4): of each connection the addresses and ports of its frames as they
// arrived, behind the DUT's translation. It is indexed by the connection's number, never by the order of arrival, so
// that a trial means the same connections whatever the DUT does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "flow/connections.hpp"
#include "frame/layout.hpp"
#include "platform/huge_page_allocator.hpp"

namespace dutperf {

// An entry is what a reply needs: words 0 … n-2 are the initiator's address as the DUT shows it, the last word has the
// reply's ports in its upper half, all in memory order. With IPv4 the address is the lower half of the only word.
// Loops on several cores share a table: each word is written whole.
class StateTable {
public:
    static constexpr std::size_t kWordsIpv4 = 1, kWordsIpv6 = 3;

    // Memory: 10 bytes a connection with IPv4, 26 with IPv6. Throws std::bad_alloc.
    StateTable(const ConnectionSpace& space, std::uint32_t connections, bool ipv6);

    [[nodiscard]] const ConnectionSpace& space() const { return space_; }
    [[nodiscard]] std::uint32_t connections() const { return connections_; }
    [[nodiscard]] bool ipv6() const { return words_ == kWordsIpv6; }
    [[nodiscard]] const std::uint64_t* entry(std::uint32_t connection) const { return &entries_[words_ * connection]; }

    // A frame of the connection arrived from `source` (an address of the table's IP version) with `ports`, the first 32
    // bits of its UDP header. Another address or port than before takes the place of the one before.
    template <bool Ipv6>
    void learn(std::uint32_t connection, const std::uint8_t* source, std::uint32_t ports) {
        constexpr std::size_t kWords = Ipv6 ? kWordsIpv6 : kWordsIpv4;
        std::uint64_t* entry = &entries_[kWords * connection];
        const std::uint64_t reply_ports = std::uint64_t{ports << 16U | ports >> 16U} << 32U;
        const std::array<std::uint64_t, kWords> arrived = words<Ipv6>(source, reply_ports);
        std::uint64_t different = 0;
        for (std::size_t word = 0; word < kWords; ++word) different |= entry[word] ^ arrived[word];
        if (different == 0) return;  // nothing is written: the line may be shared with another core
        if (is_learned(connection)) remapped_[connection] = 1;
        for (std::size_t word = 0; word < kWords; ++word) entry[word] = arrived[word];
    }

    // A frame of the connection was lost.
    void lose(std::uint32_t connection) { lost_[connection] = 1; }
    // The connections that lost frames since the last call.
    [[nodiscard]] std::vector<std::uint32_t> take_lost();

    [[nodiscard]] std::uint32_t learned() const;
    // The last connections that were learned, by their numbers, at most `most`; in increasing order.
    [[nodiscard]] std::vector<std::uint32_t> last_learned(std::uint32_t most) const;
    [[nodiscard]] std::uint32_t remapped() const;
    [[nodiscard]] std::uint32_t lost() const;

private:
    // Nobody has the address 0; ports may be 0.
    [[nodiscard]] bool is_learned(std::uint32_t connection) const {
        return std::any_of(entry(connection), entry(connection) + words_, [](std::uint64_t word) { return word != 0; });
    }

    template <bool Ipv6>
    static auto words(const std::uint8_t* source, std::uint64_t reply_ports) {
        if constexpr (Ipv6)
            return std::array{load<std::uint64_t>(source), load<std::uint64_t>(source + 8), reply_ports};
        else
            return std::array{reply_ports | load<std::uint32_t>(source)};
    }

    ConnectionSpace space_;
    std::uint32_t connections_;
    std::size_t words_;
    std::vector<std::uint64_t, HugePageAllocator<std::uint64_t>> entries_;
    std::vector<std::uint8_t> remapped_, lost_;  // bytes, because several loops write them
};

}  // namespace dutperf
