// SPDX-License-Identifier: Apache-2.0
// Makes the frames of a stream: takes buffers from a pool whose buffers already hold the template, and writes only what varies.
// What varies is known before the trial, so the writer is composed at compile time (struct Varies) and has no branch for what does not.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <cstdint>

#include "flow/flow_source.hpp"
#include "frame/frame_template.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// The buffers of one kind of frame and the template that they hold.
class FramePool {
public:
    FramePool(rte_mempool* pool, const FrameTemplate& frame, std::uint32_t generation) : pool_(pool), frame_(frame), generation_(generation) { prefill(); }

    [[nodiscard]] const FrameTemplate& frame() const { return frame_; }

    // All `count` buffers or none.
    bool take(rte_mbuf** buffers, std::uint32_t count) {
        if (rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(buffers), count) != 0) return false;
        for (std::uint32_t i = 0; i < count; ++i) prepare(buffers[i]);
        return true;
    }

private:
    // A buffer that a driver still held when the trial began carries an older template: the generation in its hash field, which no transmitting
    // driver reads or writes, tells.
    void prepare(rte_mbuf* buffer) {
        buffer->data_off = RTE_PKTMBUF_HEADROOM;
        buffer->data_len = frame_.length();
        buffer->pkt_len = frame_.length();
        if (buffer->hash.usr != generation_) [[unlikely]]
            write_template(buffer);
    }
    void write_template(rte_mbuf* buffer);
    void prefill();

    rte_mempool* pool_;
    FrameTemplate frame_;
    std::uint32_t generation_;
};

// What differs from frame to frame.
template <bool Ports, bool Addresses, bool Stamps, bool Mixed>
struct Varies {
    static constexpr bool ports = Ports, addresses = Addresses, stamps = Stamps, mixed = Mixed;
};

// Tells the frames that carry a time stamp: all, or some, spread evenly. The frames from `first` on are cut into `count` equal parts, of which each has
// one, the first part its first frame, the others one at random: a fixed distance would fall into step with what a DUT does every so many frames.
class StampChoice {
public:
    static StampChoice every() { return {}; }
    static StampChoice tagged(std::uint64_t count, std::uint64_t first, std::uint64_t span, std::uint64_t seed) { return {count, first, span, seed}; }

    // To be asked for each frame in order.
    bool wants(std::uint64_t k) {
        if (every_) return true;
        if (k != next_) [[likely]]
            return false;
        ++done_;
        next_ = done_ < count_ ? place(done_) : kNever;
        return true;
    }

private:
    static constexpr std::uint64_t kNever = ~std::uint64_t{0};

    StampChoice() = default;
    __extension__ using Wide = unsigned __int128;

    StampChoice(std::uint64_t count, std::uint64_t first, std::uint64_t span, std::uint64_t seed)
        : every_(false), count_(count), first_(first), span_(span), seed_(seed), next_(first) {}

    [[nodiscard]] std::uint64_t begin_of(std::uint64_t part) const { return static_cast<std::uint64_t>(static_cast<Wide>(part) * span_ / count_); }

    [[nodiscard]] std::uint64_t place(std::uint64_t part) const {
        const std::uint64_t begin = begin_of(part), frames = begin_of(part + 1) - begin;
        return first_ + begin + static_cast<std::uint64_t>(static_cast<Wide>(random_bits(seed_, part)) * frames >> 64U);
    }

    bool every_ = true;
    std::uint64_t count_ = 1, first_ = 0, span_ = 0, seed_ = 0, done_ = 0, next_ = kNever;
};

struct FrameSourceParts {
    FramePool* foreground;
    FramePool* background;  // nullptr unless mixed
    FieldPair ports, addresses;
    std::uint32_t n, m;
    StampChoice stamps;
};

template <class V>
class FrameSource {
public:
    explicit FrameSource(const FrameSourceParts& parts) : parts_(parts) {}

    // Buffers for the frames k … k+count-1, complete, stamped `stamp`. False if the driver holds so many buffers that too few are left.
    bool make(std::uint64_t k, std::uint32_t count, std::uint64_t stamp, rte_mbuf** frames) {
        if (!take(k, count, frames)) return false;
        if constexpr (V::ports) parts_.ports.fill(k, count, source_port_, destination_port_);
        if constexpr (V::addresses) parts_.addresses.fill(k, count, source_address_, destination_address_);
        for (std::uint32_t i = 0; i < count; ++i) write(i, k + i, V::stamps ? stamp_of(k + i, stamp) : 0, frames[i]);
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return stamped_; }

private:
    // 0 stands for "no stamp".
    std::uint64_t stamp_of(std::uint64_t k, std::uint64_t stamp) {
        if (!parts_.stamps.wants(k)) return 0;
        ++stamped_;
        return (stamp & kMask40) != 0 ? stamp : 1;
    }

    bool take(std::uint64_t k, std::uint32_t count, rte_mbuf** frames) {
        if constexpr (!V::mixed) return parts_.foreground->take(frames, count);
        std::array<rte_mbuf*, kMaxBurst> background;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by take()
        std::uint32_t foreground_count = 0, phase = static_cast<std::uint32_t>(k % parts_.n);
        for (std::uint32_t i = 0; i < count; ++i) {
            in_foreground_[i] = phase < parts_.m;
            foreground_count += in_foreground_[i] ? 1U : 0U;
            phase = phase + 1 == parts_.n ? 0 : phase + 1;
        }
        if (!parts_.background->take(background.data(), count - foreground_count)) return false;
        std::array<rte_mbuf*, kMaxBurst> foreground;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by take()
        if (!parts_.foreground->take(foreground.data(), foreground_count)) {
            rte_pktmbuf_free_bulk(background.data(), count - foreground_count);
            return false;
        }
        std::uint32_t next_foreground = 0, next_background = 0;
        for (std::uint32_t i = 0; i < count; ++i) frames[i] = in_foreground_[i] ? foreground[next_foreground++] : background[next_background++];
        return true;
    }

    void write(std::uint32_t i, std::uint64_t k, std::uint64_t stamp, rte_mbuf* buffer) {
        const FrameTemplate& frame = V::mixed && !in_foreground_[i] ? parts_.background->frame() : parts_.foreground->frame();
        auto* bytes = rte_pktmbuf_mtod(buffer, std::uint8_t*);
        std::uint8_t* udp = bytes + frame.udp_at();
        std::uint64_t sum = frame.udp_sum();
        sum += write_addresses(i, frame, bytes);
        sum += write_ports(i, frame, udp);
        std::uint8_t* tag_at = udp + udp::kSize;
        const std::uint64_t high = tag_high(k, stamp);
        store(tag_at + tag::kHighAt, high);
        sum = checksum_add64(sum, high);
        if constexpr (V::stamps) {
            const std::uint16_t low = tag_low(stamp);
            store(tag_at + tag::kLowAt, low);
            sum += low;
        }
        store(udp + udp::kChecksum, checksum_finish_udp(sum));
    }

    // Returns what the ports add to the UDP checksum.
    std::uint32_t write_ports(std::uint32_t i, const FrameTemplate& frame, std::uint8_t* udp) {
        if constexpr (!V::ports) return frame.ports();
        const std::uint32_t both = std::uint32_t{swap16(source_port_[i])} | std::uint32_t{swap16(destination_port_[i])} << 16U;
        store(udp, both);
        return both;
    }

    // Returns what the varying words add to the UDP checksum; the IPv4 header's is written here.
    std::uint32_t write_addresses(std::uint32_t i, const FrameTemplate& frame, std::uint8_t* bytes) {
        if constexpr (!V::addresses) return frame.slots_sum();
        std::uint32_t added = 0;
        const auto write_slot = [&](const AddressSlot& slot, std::uint16_t value) {
            const std::uint16_t word = slot.word(value);
            store(bytes + slot.at, word);
            added += checksum_word(word, slot.at_odd_offset());
        };
        write_slot(frame.source_slot(), source_address_[i]);
        write_slot(frame.destination_slot(), destination_address_[i]);
        if (!frame.is_ipv6()) store(bytes + ethernet::kSize + ipv4::kChecksum, checksum_finish(frame.ip_sum() + added));
        return added;
    }

    FrameSourceParts parts_;
    Column source_port_{}, destination_port_{}, source_address_{}, destination_address_{};
    std::array<bool, kMaxBurst> in_foreground_{};
    std::uint64_t stamped_ = 0;
};

}  // namespace dutperf
