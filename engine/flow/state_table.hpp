// SPDX-License-Identifier: Apache-2.0
// The Responder's state table (RFC 9693 section 4): of each connection the addresses and ports of its frames as they
// arrived, behind the DUT's translation. It is indexed by the connection's number, never by the order of arrival, so
// that a trial means the same connections whatever the DUT does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "flow/connections.hpp"
#include "frame/layout.hpp"

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

    enum class Arrival : std::uint8_t { opened, known, remapped };
    // A frame of the connection arrived from `source` (an address of the table's IP version) with `ports`, the first 32
    // bits of its UDP header. Another address or port than before takes the place of the one before.
    Arrival learn(std::uint32_t connection, const std::uint8_t* source, std::uint32_t ports) {
        std::uint64_t* entry = &entries_[words_ * connection];
        const std::uint64_t reply_ports = std::uint64_t{ports << 16U | ports >> 16U} << 32U;
        const bool known = entry[words_ - 1] != 0;
        if (words_ == kWordsIpv4) return set(connection, entry[0], reply_ports | load<std::uint32_t>(source), known);
        const std::uint64_t before[]{entry[0], entry[1], entry[2]};
        entry[0] = load<std::uint64_t>(source);
        entry[1] = load<std::uint64_t>(source + 8);
        entry[2] = reply_ports;
        if (!known) return Arrival::opened;
        if (before[0] == entry[0] && before[1] == entry[1] && before[2] == entry[2]) return Arrival::known;
        remapped_[connection] = 1;
        return Arrival::remapped;
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
    [[nodiscard]] bool is_learned(std::uint32_t connection) const { return entry(connection)[words_ - 1] != 0; }

    Arrival set(std::uint32_t connection, std::uint64_t& entry, std::uint64_t value, bool known) {
        if (entry == value) return Arrival::known;
        entry = value;
        if (!known) return Arrival::opened;
        remapped_[connection] = 1;
        return Arrival::remapped;
    }

    ConnectionSpace space_;
    std::uint32_t connections_;
    std::size_t words_;
    std::vector<std::uint64_t> entries_;
    std::vector<std::uint8_t> remapped_, lost_;  // bytes, because several loops write them
};

}  // namespace dutperf
