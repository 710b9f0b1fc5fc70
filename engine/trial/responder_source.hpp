// SPDX-License-Identifier: Apache-2.0
// Makes the Responder's frames (RFC 9693 section 4): each is a reply inside the connection of its number, to the
// address and ports that the state table has of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "flow/connections.hpp"
#include "flow/state_table.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

// The frames of `pool` have destination addresses and ports of 0.
struct ResponderParts {
    FramePool* pool;
    const StateTable* table;  // every connection that is chosen is in it
    ConnectionChoice choice;
    std::optional<ConnectionFields> addresses;  // of the same choice, if the connections have several destinations
    StampChoice stamps;
    NicSending nic = {};
    Share share = {};
};

template <bool Ipv6, bool Stamps>
class ResponderSource {
public:
    using Parts = ResponderParts;
    static constexpr bool kStamps = Stamps;

    explicit ResponderSource(const ResponderParts& parts)
        : parts_(parts), stride_(parts.share.stride), stamps_(parts.stamps) {}

    // See FrameSource::make.
    bool make(std::uint64_t j, std::uint32_t count, std::uint64_t stamp, rte_mbuf** frames,
              const Ticks* stamps = nullptr) {
        const std::uint64_t k = parts_.share.number(j);
        if (!parts_.pool->take(frames, count)) return false;
        parts_.choice.fill(k, stride_, count, connections_.data());
        find_entries(count);
        if (parts_.addresses) parts_.addresses->fill_addresses(k, count, unused_, source_address_);
        if constexpr (Stamps) stamps_.fill(k, parts_.share.stride, count, stamp, stamps);
        compute(k, count);
        write(count, frames);
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return stamps_.stamped(); }
    // Of the i-th frame of the last burst.
    [[nodiscard]] bool has_stamp(std::size_t i) const { return stamps_.of(i) != 0; }

private:
    static constexpr const Layout& kLayout = Ipv6 ? kIpv6Layout : kIpv4Layout;
    static constexpr std::size_t kWords = Ipv6 ? StateTable::kWordsIpv6 : StateTable::kWordsIpv4;
    static constexpr std::uint64_t kLowerHalf = 0xFFFFFFFF;
    template <class Word>
    using Words = std::array<Word, kMaxBurst>;

    // The entries of a large table are in no cache: all are fetched before the first is read.
    void find_entries(std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            entries_[i] = parts_.table->entry(connections_[i]);
            __builtin_prefetch(entries_[i]);
        }
        std::fill_n(&entries_[count], kLanes, entries_[0]);  // lanes behind the last frame are computed too
    }

    void compute(std::uint64_t k, std::uint32_t count) {
        const FrameTemplate& frame = parts_.pool->frame();
        const bool varies = parts_.addresses.has_value();
        const AddressSlot source = frame.source_slot();
        const std::uint64_t slots_sum = varies ? 0 : frame.slots_sum();
        const std::uint64_t fixed = frame.udp_sum() + slots_sum, ip_sum = frame.ip_sum() + slots_sum;
        for (std::uint32_t i = 0; i < count; i += kLanes) {
            const Lanes stamp = Stamps ? stamps_.lanes(i) : Lanes{};
            const Lanes high = tag_high(stride_.lanes(k, i), stamp);
            store_lanes(&high_[i], high);
            Lanes sum = checksum_add64(fixed + Lanes{}, high), source_sum{};
            if (varies) [[unlikely]] {
                const Lanes word = source.words(load_lanes(&source_address_[i]));
                store_lanes(&source_word_[i], word);
                source_sum = checksum_word(word, source.at_odd_offset());
                sum += source_sum;
            }
            if constexpr (Stamps) {
                store_lanes(&low_[i], tag_low(stamp));
                sum += tag_low(stamp);
            }
            for (std::size_t word = 0; word < kWords; ++word) {
                const Lanes of_entry = gather_lanes(&entries_[i], word);
                store_lanes(&words_[word][i], of_entry);
                sum = checksum_add64(sum, of_entry);
            }
            if constexpr (!Ipv6) {
                const Lanes address = load_lanes(&words_[0][i]) & kLowerHalf;
                store_lanes(&ip_checksum_[i], checksum_finished(ip_sum + source_sum + address));
            }
            store_lanes(&udp_checksum_[i], checksum_finished_udp(sum));
        }
    }

    void write(std::uint32_t count, rte_mbuf** frames) const {
        const bool varies = parts_.addresses.has_value();
        const std::size_t source_at = parts_.pool->frame().source_slot().at;
        for (std::uint32_t i = 0; i < count; ++i) {
            std::uint8_t* bytes = begin_of_frame(frames[i]);
            std::uint8_t* udp = bytes + kLayout.transport_at();
            store(udp + kTagInUdp + tag::kHighAt, high_[i]);
            if constexpr (Stamps) store(udp + kTagInUdp + tag::kLowAt, low_[i]);
            store(udp, static_cast<std::uint32_t>(words_[kWords - 1][i] >> 32U));
            store(udp + udp::kChecksum, udp_checksum_[i]);
            if (varies) [[unlikely]]
                store(bytes + source_at, source_word_[i]);
            if constexpr (Ipv6) {
                store(bytes + kLayout.destination_at(), words_[0][i]);
                store(bytes + kLayout.destination_at() + sizeof words_[0][i], words_[1][i]);
            } else {
                store(bytes + kLayout.destination_at(), static_cast<std::uint32_t>(words_[0][i]));
                store(bytes + kLayout.ip_at() + ipv4::kChecksum, ip_checksum_[i]);
            }
        }
    }

    ResponderParts parts_;
    Stride stride_;
    StampColumn stamps_;
    alignas(kLanesAlignment) ConnectionNumbers connections_{};
    std::array<const std::uint64_t*, kMaxBurst + kLanes> entries_{};
    alignas(kLanesAlignment) std::array<Words<std::uint64_t>, kWords> words_{};
    alignas(kLanesAlignment) Words<std::uint64_t> high_{};
    alignas(kLanesAlignment) Words<std::uint16_t> low_{}, udp_checksum_{}, ip_checksum_{}, source_word_{};
    alignas(kLanesAlignment) Column source_address_{}, unused_{};
};

}  // namespace dutperf
