// SPDX-License-Identifier: Apache-2.0
// Makes the frames of a stream: takes buffers that already hold the template from a pool and writes only the varying
// fields. Which fields vary is known before the trial, so the writer is composed at compile time (struct Varies) and
// has no branches for constant fields.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <variant>

#include "flow/connections.hpp"
#include "flow/flow_source.hpp"
#include "frame/frame_template.hpp"
#include "frame/lanes.hpp"
#include "pace/share.hpp"
#include "trial/departures.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// The template that a buffer is to hold. Buffers are written only if they hold another one. A buffer that a driver
// still held when the trial began has an older template. It is recognised by the generation in its hash field, which no
// transmitting driver reads or writes.
struct FrameImage {
    const std::uint8_t* data;
    std::uint16_t length;
    std::uint32_t generation;  // different for each template since the start of the program
    // whether the sender writes the length of each frame: buffers may then hold any
    bool any_length = false;

    static FrameImage of(const FrameTemplate& frame, std::uint32_t generation);

    // Writes descriptor and template. Nothing else writes a descriptor, so that its line stays in the caches of all
    // cores that read it.
    void write(rte_mbuf* buffer) const;
    [[nodiscard]] bool is_in(const rte_mbuf* buffer) const {
        return buffer->hash.usr == generation && buffer->data_off == RTE_PKTMBUF_HEADROOM &&
               (any_length || (buffer->data_len == length && buffer->pkt_len == length));
    }
    void describe(rte_mbuf& buffer) const { describe(buffer, RTE_PKTMBUF_HEADROOM, length, generation); }
    static void describe(rte_mbuf& buffer, std::uint16_t offset, std::uint32_t length,
                         std::uint32_t generation);  // writes only these fields
};

// A number for each template since the start of the program.
std::uint32_t next_generation();

// The start of the frame in a buffer.
inline std::uint8_t* begin_of_frame(rte_mbuf* buffer) {
    return static_cast<std::uint8_t*>(buffer->buf_addr) + RTE_PKTMBUF_HEADROOM;
}

// Prefetches the line that will be written: if another core freed the buffer, the line is in that core's cache, and
// each write would wait.
inline void prefetch_frame(rte_mbuf* buffer) {
    __builtin_prefetch(reinterpret_cast<char*>(buffer + 1) + RTE_PKTMBUF_HEADROOM, 1);
}

// The pool of a path's frames. Of one that several paths share, no buffer is written before it is sent.
struct PathPool {
    explicit(false) PathPool(rte_mempool* of_path, bool shared = false) : pool(of_path), is_shared(shared) {}

    rte_mempool* pool;
    bool is_shared;
};

// Visits every buffer that is in the pool. The order of the pool does not change.
void for_each_at_home(rte_mempool* pool, const std::function<void(rte_mbuf*)>& visit);

// Buffers that hold one template.
class ImagePool {
public:
    // Writes the template into the buffers of the pool, so that the loop need not.
    ImagePool(const PathPool& of, const FrameImage& image) : pool_(of.pool), image_(image), expected_(expected(image)) {
        if (!of.is_shared) for_each_at_home(pool_, [this](rte_mbuf* buffer) { prepare({&buffer, 1}); });
    }

    // Takes all `count` buffers or none.
    bool take(rte_mbuf** buffers, std::uint32_t count) const {
        if (rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(buffers), count) != 0) return false;
        for (std::uint32_t i = 0; i < count; ++i) prefetch_frame(buffers[i]);
        Description different{};
        for (std::uint32_t i = 0; i < count; ++i) different |= description_of(buffers[i]) ^ expected_.values;
        if (differs(different)) [[unlikely]]
            prepare({buffers, count});
        return true;
    }

private:
    void prepare(std::span<rte_mbuf* const> buffers) const;

    // The fields of a descriptor that are compared are adjacent: a burst is compared in a few instructions without a
    // branch.
    using Description = std::uint64_t __attribute__((vector_size(32), aligned(16), may_alias));
    static Description description_of(const rte_mbuf* buffer) {
        return *reinterpret_cast<const Description*>(&buffer->rearm_data);
    }
    struct Expected {
        Description values, mask;
    };
    static Expected expected(const FrameImage& image);
    [[nodiscard]] bool differs(Description some) const {
        const Description bits = some & expected_.mask;
        return (bits[0] | bits[1] | bits[2] | bits[3]) != 0;
    }

    rte_mempool* pool_;
    FrameImage image_;
    Expected expected_;
};

// The buffers of one kind of frame and the template that they hold.
class FramePool {
public:
    FramePool(const PathPool& pool, const FrameTemplate& frame, std::uint32_t generation)
        : frame_(frame), pool_(pool, FrameImage::of(frame_, generation)) {}
    FramePool(const FramePool&) = delete;  // the images are in its own template
    FramePool& operator=(const FramePool&) = delete;

    [[nodiscard]] const FrameTemplate& frame() const { return frame_; }

    // See ImagePool::take.
    bool take(rte_mbuf** buffers, std::uint32_t count) const { return pool_.take(buffers, count); }

private:
    FrameTemplate frame_;
    ImagePool pool_;
};

// The fields that vary from frame to frame.
template <bool Ports, bool Addresses, bool Stamps, bool Mixed>
struct Varies {
    static constexpr bool ports = Ports, addresses = Addresses, stamps = Stamps, mixed = Mixed;
};

// Chooses the frames that carry a time stamp: all, or some that are spread evenly. The frames from `first` on are
// divided into `count` equal parts with one stamped frame each: the first frame of the first part, and a random one of
// each other part. A fixed distance could synchronise with periodic work of the DUT.
class StampChoice {
public:
    static StampChoice of(const TrialSpec& spec, Direction direction);
    static StampChoice every() { return {}; }
    static StampChoice tagged(std::uint64_t count, std::uint64_t first, std::uint64_t span, std::uint64_t seed) {
        return {count, first, span, seed};
    }

    // For `count` frames from frame k on, `stride` apart: writes `stamp` for the chosen frames and 0 for the others,
    // and returns how many are chosen. To be called for all frames of a sender in order.
    std::uint32_t fill(std::uint64_t k, std::uint64_t stride, std::uint32_t count, std::uint64_t stamp,
                       std::uint64_t* stamps) {
        if (every_) {
            std::fill_n(stamps, count, stamp);
            return count;
        }
        std::fill_n(stamps, count, std::uint64_t{0});
        std::uint32_t chosen = 0;
        for (const std::uint64_t end = k + count * stride; next_ < end;) {
            if (next_ >= k && (next_ - k) % stride == 0) {
                stamps[(next_ - k) / stride] = stamp;
                ++chosen;
            }
            ++done_;
            next_ = done_ < count_ ? place(done_) : kNever;
        }
        return chosen;
    }

    // Whether frame k carries a stamp.
    [[nodiscard]] bool chooses(std::uint64_t k) const {
        if (every_) return true;
        if (k < first_ || k - first_ >= span_) return false;
        auto part = static_cast<std::uint64_t>(static_cast<Wide>(k - first_) * count_ / span_);
        if (begin_of(part + 1) <= k - first_) ++part;  // the begin of a part is rounded down
        return k == place(part);
    }

    // Visits the frames below `end` that carry a stamp, in order.
    template <class Visit>
    void for_each(std::uint64_t end, const Visit& visit) const {
        if (every_) {
            for (std::uint64_t k = 0; k < end; ++k) visit(k);
            return;
        }
        for (std::uint64_t part = 0, k = first_; part < count_ && k < end; k = ++part < count_ ? place(part) : kNever)
            visit(k);
    }

private:
    static constexpr std::uint64_t kNever = ~std::uint64_t{0};

    StampChoice() = default;
    __extension__ using Wide = unsigned __int128;

    StampChoice(std::uint64_t count, std::uint64_t first, std::uint64_t span, std::uint64_t seed)
        : every_(false), count_(count), first_(first), span_(span), seed_(seed), next_(count == 0 ? kNever : first) {}

    [[nodiscard]] std::uint64_t begin_of(std::uint64_t part) const {
        return static_cast<std::uint64_t>(static_cast<Wide>(part) * span_ / count_);
    }

    [[nodiscard]] std::uint64_t place(std::uint64_t part) const {
        if (part == 0) return first_;
        const std::uint64_t begin = begin_of(part), frames = begin_of(part + 1) - begin;
        return first_ + begin + static_cast<std::uint64_t>(static_cast<Wide>(random_bits(seed_, part)) * frames >> 64U);
    }

    bool every_ = true;
    std::uint64_t count_ = 1, first_ = 0, span_ = 0, seed_ = 0, done_ = 0, next_ = kNever;
};

// The stamps of a burst: of each frame its send time, or 0 for "no stamp".
class StampColumn {
public:
    explicit StampColumn(const StampChoice& choice) : choice_(choice) {}

    // For `count` frames from frame k on, `stride` apart: all with `stamp`, or each with its entry of `stamps` if
    // given.
    void fill(std::uint64_t k, std::uint64_t stride, std::uint32_t count, std::uint64_t stamp, const Ticks* stamps) {
        stamped_ += choice_.fill(k, stride, count, not_zero(stamp), stamps_.data());
        if (stamps == nullptr) [[likely]]
            return;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (stamps_[i] != 0) stamps_[i] = not_zero(stamps[i]);
        }
    }

    [[nodiscard]] std::uint64_t of(std::size_t i) const { return stamps_[i]; }
    [[nodiscard]] Lanes lanes(std::size_t i) const { return load_lanes(&stamps_[i]); }
    [[nodiscard]] std::uint64_t stamped() const { return stamped_; }

private:
    static std::uint64_t not_zero(std::uint64_t stamp) { return (stamp & kMask40) != 0 ? stamp : 1; }

    StampChoice choice_;
    alignas(kLanesAlignment) std::array<std::uint64_t, kMaxBurst> stamps_{};
    std::uint64_t stamped_ = 0;
};

// The ports and addresses of the frames: by their numbers, or by their connections.
class FrameFields {
public:
    struct Independent {
        FieldPair ports, addresses;
    };
    FrameFields(const FieldPair& ports, const FieldPair& addresses) : fields_(Independent{ports, addresses}) {}
    explicit FrameFields(ConnectionFields connections) : fields_(std::move(connections)) {}

    // See FieldPair::fill.
    void fill_ports(std::uint64_t k, std::size_t count, DoubleColumn& both) const {
        if (const auto* independent = std::get_if<Independent>(&fields_)) [[likely]]
            return independent->ports.fill(k, count, both);
        std::get<ConnectionFields>(fields_).fill_ports(k, count, both);
    }
    void fill_addresses(std::uint64_t k, std::size_t count, Column& source, Column& destination) const {
        if (const auto* independent = std::get_if<Independent>(&fields_)) [[likely]]
            return independent->addresses.fill(k, count, source, destination);
        std::get<ConnectionFields>(fields_).fill_addresses(k, count, source, destination);
    }

private:
    std::variant<Independent, ConnectionFields> fields_;
};

struct FrameSourceParts {
    FramePool* foreground;
    FramePool* background;  // nullptr unless mixed
    FrameFields fields;
    std::uint32_t n, m;
    StampChoice stamps;
    NicSending nic = {};
    Share share = {};
};

template <class V>
class FrameSource {
public:
    using Parts = FrameSourceParts;
    static constexpr bool kStamps = V::stamps;

    explicit FrameSource(const FrameSourceParts& parts)
        : parts_(parts), stride_(parts.share.stride), stamps_(parts.stamps) {}

    // Makes the frames j … j+count-1 of the share, stamped with `stamp`, or each with its entry of `stamps` if given.
    // False if too few buffers are left because the driver holds them.
    bool make(std::uint64_t j, std::uint32_t count, std::uint64_t stamp, rte_mbuf** frames,
              const Ticks* stamps = nullptr) {
        const std::uint64_t k = parts_.share.number(j);
        if (!take(k, count, frames)) return false;
        if constexpr (V::ports) parts_.fields.fill_ports(k, count, ports_);
        if constexpr (V::addresses) parts_.fields.fill_addresses(k, count, source_address_, destination_address_);
        if constexpr (V::stamps) stamps_.fill(k, parts_.share.stride, count, stamp, stamps);
        compute(parts_.foreground->frame(), k, count, of_foreground_);
        if constexpr (V::mixed) compute(parts_.background->frame(), k, count, of_background_);
        write(count, frames);
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return stamps_.stamped(); }
    // Of the i-th frame of the last burst.
    [[nodiscard]] bool has_stamp(std::size_t i) const { return stamps_.of(i) != 0; }

private:
    template <class Word>
    using Words = std::array<Word, kMaxBurst>;

    // The varying fields of a burst from one template, in memory order. Each field is computed for lanes of frames at
    // once.
    struct Fields {
        alignas(kLanesAlignment) Words<std::uint64_t> high;
        alignas(kLanesAlignment) Words<std::uint16_t> low, udp_checksum, source_word, destination_word, ip_checksum;
    };

    bool take(std::uint64_t k, std::uint32_t count, rte_mbuf** frames) {
        if constexpr (!V::mixed) return parts_.foreground->take(frames, count);
        std::array<rte_mbuf*, kMaxBurst>
            background;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by take()
        std::uint32_t foreground_count = 0, phase = static_cast<std::uint32_t>(k % parts_.n);
        const auto forward = static_cast<std::uint32_t>(parts_.share.stride % parts_.n);
        for (std::uint32_t i = 0; i < count; ++i) {
            in_foreground_[i] = phase < parts_.m;
            foreground_count += in_foreground_[i] ? 1U : 0U;
            phase += forward;
            phase = phase >= parts_.n ? phase - parts_.n : phase;
        }
        if (!parts_.background->take(background.data(), count - foreground_count)) return false;
        std::array<rte_mbuf*, kMaxBurst>
            foreground;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by take()
        if (!parts_.foreground->take(foreground.data(), foreground_count)) {
            rte_pktmbuf_free_bulk(background.data(), count - foreground_count);
            return false;
        }
        std::uint32_t next_foreground = 0, next_background = 0;
        for (std::uint32_t i = 0; i < count; ++i)
            frames[i] = in_foreground_[i] ? foreground[next_foreground++] : background[next_background++];
        return true;
    }

    // Computes whole lanes; values after the last frame are not written.
    void compute(const FrameTemplate& frame, std::uint64_t k, std::uint32_t count, Fields& out) const {
        const std::uint64_t whole = std::uint64_t{frame.udp_sum()} + (V::ports ? 0 : frame.ports());
        const std::uint64_t fixed = whole + (V::addresses ? 0 : frame.slots_sum());
        const AddressSlot source = frame.source_slot(), destination = frame.destination_slot();
        const std::uint64_t ip_sum = frame.ip_sum();
        for (std::uint32_t i = 0; i < count; i += kLanes) {
            const Lanes stamp = V::stamps ? stamps_.lanes(i) : Lanes{};
            const Lanes high = tag_high(stride_.lanes(k, i), stamp);
            store_lanes(&out.high[i], high);
            Lanes sum = checksum_add64(fixed + Lanes{}, high);
            if constexpr (V::stamps) {
                const Lanes low = tag_low(stamp);
                store_lanes(&out.low[i], low);
                sum += low;
            }
            if constexpr (V::ports) sum += load_lanes(&ports_[i]);
            if constexpr (V::addresses) {
                const Lanes source_word = source.words(load_lanes(&source_address_[i])),
                            destination_word = destination.words(load_lanes(&destination_address_[i]));
                const Lanes added = checksum_word(source_word, source.at_odd_offset()) +
                                    checksum_word(destination_word, destination.at_odd_offset());
                store_lanes(&out.source_word[i], source_word);
                store_lanes(&out.destination_word[i], destination_word);
                store_lanes(&out.ip_checksum[i], checksum_finished(ip_sum + added));
                sum += added;
            }
            store_lanes(&out.udp_checksum[i], checksum_finished_udp(sum));
        }
    }

    // Offsets of the fields as local values: to the compiler, the byte writes could change any member.
    struct Places {
        explicit Places(const FrameTemplate& frame)
            : udp(frame.layout().transport_at()),
              source(frame.source_slot().at),
              destination(frame.destination_slot().at),
              ip_checksum(frame.layout().ip_at() + ipv4::kChecksum),
              ipv4(!frame.layout().ipv6) {}
        std::size_t udp, source, destination, ip_checksum;
        bool ipv4;
    };

    void write(std::uint32_t count, rte_mbuf** frames) const {
        const Places of_foreground(parts_.foreground->frame());
        if constexpr (!V::mixed) {
            for (std::uint32_t i = 0; i < count; ++i) write_one(of_foreground, of_foreground_, i, frames[i]);
        } else {
            const Places of_background(parts_.background->frame());
            for (std::uint32_t i = 0; i < count; ++i)
                in_foreground_[i] ? write_one(of_foreground, of_foreground_, i, frames[i])
                                  : write_one(of_background, of_background_, i, frames[i]);
        }
    }

    void write_one(const Places& at, const Fields& fields, std::uint32_t i, rte_mbuf* buffer) const {
        std::uint8_t* bytes = begin_of_frame(buffer);
        std::uint8_t* udp = bytes + at.udp;
        store(udp + kTagInUdp + tag::kHighAt, fields.high[i]);
        if constexpr (V::stamps) store(udp + kTagInUdp + tag::kLowAt, fields.low[i]);
        if constexpr (V::ports) store(udp, ports_[i]);
        store(udp + udp::kChecksum, fields.udp_checksum[i]);
        if constexpr (V::addresses) {
            store(bytes + at.source, fields.source_word[i]);
            store(bytes + at.destination, fields.destination_word[i]);
            if (at.ipv4) store(bytes + at.ip_checksum, fields.ip_checksum[i]);
        }
    }

    FrameSourceParts parts_;
    Stride stride_;
    alignas(kLanesAlignment) DoubleColumn ports_{};
    alignas(kLanesAlignment) Column source_address_{}, destination_address_{};
    StampColumn stamps_;
    Fields of_foreground_{}, of_background_{};
    std::array<bool, kMaxBurst> in_foreground_{};
};

}  // namespace dutperf
