// SPDX-License-Identifier: Apache-2.0
// Makes the frames of a stream of described frames (flow/described_frame.hpp): of several kinds, with any fields that
// vary. Like FrameSource it takes buffers that already hold the template and writes only what varies.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flow/described_frame.hpp"
#include "flow/kind_order.hpp"
#include "pace/share.hpp"
#include "trial/departures.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

// A kind of frame, ready to be made. What follows from the flow alone is computed before the trial: a row for each
// flow has its words, and its part of each checksum.
class DescribedKind {
public:
    DescribedKind(DescribedTemplate frame, std::uint32_t generation);

    [[nodiscard]] const DescribedTemplate& frame() const { return frame_; }
    [[nodiscard]] FrameImage image() const { return {frame_.data(), frame_.length(), generation_}; }
    [[nodiscard]] std::uint32_t generation() const { return generation_; }
    [[nodiscard]] const FlowChoice& flows() const { return flows_; }
    [[nodiscard]] const std::uint64_t* row(std::uint32_t flow) const { return rows_.data() + flow * row_size_; }
    // The fields that vary from frame to frame, and their pieces.
    struct Field {
        std::size_t number = 0;
        std::vector<DescribedTemplate::Piece> pieces;
    };
    [[nodiscard]] const std::vector<Field>& by_frame() const { return by_frame_; }
    // Whether a word has a field that varies from frame to frame: it is not in the rows' checksums.
    [[nodiscard]] bool varies_by_frame(std::size_t word) const { return word_by_frame_[word]; }

private:
    void add_row(std::uint32_t flow);

    DescribedTemplate frame_;
    std::uint32_t generation_;
    FlowChoice flows_;
    std::vector<Field> by_frame_;
    std::vector<bool> word_by_frame_;
    std::size_t row_size_;
    std::vector<std::uint64_t> rows_;
};

// All kinds of a direction and the buffers for them. Several senders may use it.
class DescribedFrames {
public:
    DescribedFrames(rte_mempool* pool, std::vector<DescribedKind> kinds, KindOrder order);

    [[nodiscard]] rte_mempool* pool() const { return pool_; }
    [[nodiscard]] const std::vector<DescribedKind>& kinds() const { return kinds_; }
    [[nodiscard]] const KindOrder& order() const { return order_; }
    // The buffers, if there is one kind only.
    [[nodiscard]] const std::optional<ImagePool>& single() const { return single_; }

private:
    rte_mempool* pool_;
    std::vector<DescribedKind> kinds_;  // their generations are consecutive
    KindOrder order_;
    std::optional<ImagePool> single_;
};

// Buffers of one sender by kind. A pool gives any buffers; those that hold another kind's template than is needed wait
// for it here, so that templates are seldom written again. Buffers are sorted without branches: their kinds cannot be
// predicted.
class FrameShelves {
public:
    explicit FrameShelves(const DescribedFrames& frames);
    ~FrameShelves();
    FrameShelves(const FrameShelves&) = delete;
    FrameShelves& operator=(const FrameShelves&) = delete;

    // Takes `counts[kind]` buffers of each kind, one kind after the other, `count` in all; or none.
    bool take(const std::uint16_t* counts, std::uint32_t count, rte_mbuf** buffers);

private:
    static constexpr std::uint32_t kStock = 512;  // buffers that may wait
    using Shelf = std::array<rte_mbuf*, kStock + 2 * kMaxBurst>;

    bool fetch(std::uint32_t count);
    void sort(rte_mbuf** buffers, std::uint32_t count);
    void rewrite(std::size_t kind, std::uint32_t count);

    const DescribedFrames* frames_;
    std::uint32_t first_;  // generation of the first kind
    std::vector<Shelf> shelves_;
    std::array<std::uint32_t, kMostKinds> sizes_{};
    std::uint32_t waiting_ = 0;
    std::array<rte_mbuf*, 2 * kMaxBurst> fetched_{};
};

struct DescribedParts {
    const DescribedFrames* frames;
    StampChoice stamps;
    NicSending nic = {};
    Share share = {};
};

template <bool Stamps>
class DescribedSource {
public:
    using Parts = DescribedParts;
    static constexpr bool kStamps = Stamps;

    explicit DescribedSource(const DescribedParts& parts)
        : frames_(*parts.frames),
          stamping_(parts.stamps),
          share_(parts.share),
          stride_(parts.share.stride),
          shelves_(*parts.frames) {
        for (std::size_t i = 0; i < place_.size(); ++i) place_[i] = static_cast<std::uint16_t>(i);
    }

    // See FrameSource::make.
    bool make(std::uint64_t j, std::uint32_t count, std::uint64_t stamp, rte_mbuf** frames,
              const Ticks* stamps = nullptr) {
        sort(share_.number(j), count);
        if (!take(count, frames)) return false;
        if constexpr (Stamps) stamping_.fill(share_.number(j), share_.stride, count, stamp, stamps);
        for (std::size_t kind = 0; kind < frames_.kinds().size(); ++kind) {
            if (counts_[kind] == 0) continue;
            compute(frames_.kinds()[kind], starts_[kind], counts_[kind]);
            write(frames_.kinds()[kind], starts_[kind], counts_[kind], frames);
        }
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return stamping_.stamped(); }

private:
    static constexpr std::size_t kRoom = kMaxBurst + kLanes;
    using Column64 = std::array<std::uint64_t, kRoom>;

    // Sorts a burst by kinds: of each frame its place in the burst, its number, and its number among its kind.
    void sort(std::uint64_t k, std::uint32_t count) {
        if (frames_.order().is_single()) {
            counts_[0] = static_cast<std::uint16_t>(count);
            for (std::uint32_t i = 0; i < count; i += kLanes) {
                const Lanes numbers = stride_.lanes(k, i);
                store_lanes(&sequence_[i], numbers);
                store_lanes(&number_[i], numbers);
            }
            return;
        }
        counts_.fill(0);
        frames_.order().walk(k, share_.stride, count, [this](std::uint32_t i, const KindOrder::Place& place) {
            drawn_[i] = place;
            ++counts_[place.kind];
        });
        std::array<std::uint16_t, kMostKinds> next{};
        for (std::size_t kind = 1; kind < kMostKinds; ++kind)
            next[kind] = static_cast<std::uint16_t>(next[kind - 1] + counts_[kind - 1]);
        starts_ = next;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint16_t at = next[drawn_[i].kind]++;
            place_[at] = static_cast<std::uint16_t>(i);
            sequence_[at] = k + i * share_.stride;
            number_[at] = drawn_[i].number;
        }
    }

    // Takes buffers of every kind, or none at all.
    bool take(std::uint32_t count, rte_mbuf** frames) {
        if (frames_.order().is_single()) return frames_.single()->take(frames, count);
        if (!shelves_.take(counts_.data(), count, sorted_.data())) return false;
        for (std::uint32_t i = 0; i < count; ++i) frames[place_[i]] = sorted_[i];
        return true;
    }

    // Computes what varies in `count` frames of a kind, from place `start` of the sorted burst on.
    void compute(const DescribedKind& kind, std::uint32_t start, std::uint32_t count) {
        const DescribedTemplate& frame = kind.frame();
        const std::size_t words = frame.words().size(), sums = frame.sums().size();
        resize(words, sums);
        if (kind.flows().flows == 1) {
            const std::uint64_t* row = kind.row(0);
            for (std::size_t w = 0; w < words; ++w) std::fill_n(words_[w].begin(), count, row[w]);
            for (std::size_t s = 0; s < sums; ++s) std::fill_n(sums_[s].begin(), count, row[words + s]);
        } else {
            take_rows(kind, start, count);
        }
        for (const DescribedKind::Field& field : kind.by_frame()) vary(frame, field, start, count);
        number_tags(start, count);
        for (std::size_t s = 0; s < sums; ++s) sum_up(kind, s, count);
    }

    // The rows of the frames' flows. Frames of a kind mostly follow each other: their flows then need no division.
    void take_rows(const DescribedKind& kind, std::uint32_t start, std::uint32_t count) {
        const std::size_t words = kind.frame().words().size(), sums = kind.frame().sums().size();
        const FlowChoice& flows = kind.flows();
        std::uint32_t flow = flows.of(number_[start]);
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint64_t* row = kind.row(flow);
            for (std::size_t w = 0; w < words; ++w) words_[w][i] = row[w];
            for (std::size_t s = 0; s < sums; ++s) sums_[s][i] = row[words + s];
            const std::uint64_t next = number_[start + i + 1];  // behind the last frame any number
            const bool follows = !flows.random && next == number_[start + i] + 1;
            flow = !follows ? flows.of(next) : flow + 1 == flows.flows ? 0 : flow + 1;
        }
    }

    void resize(std::size_t words, std::size_t sums) {
        if (words_.size() < words) words_.resize(words);
        if (sums_.size() < sums) sums_.resize(sums);
    }

    void vary(const DescribedTemplate& frame, const DescribedKind::Field& field, std::uint32_t start,
              std::uint32_t count) {
        const VaryingBits& bits = frame.frame().fields[field.number];
        const std::uint64_t seed = frame.seed_of(field.number);
        for (std::uint32_t i = 0; i < count; ++i) {
            const Number128 value = bits.value(number_[start + i], seed);
            for (const DescribedTemplate::Piece& piece : field.pieces)
                words_[piece.word][i] |= DescribedTemplate::piece_of(piece, value);
        }
    }

    void number_tags(std::uint32_t start, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; i += kLanes) {
            Lanes stamp{};
            if constexpr (Stamps) {
                if (frames_.order().is_single()) {
                    stamp = stamping_.lanes(i);
                } else {
                    for (std::size_t lane = 0; lane < kLanes; ++lane)
                        stamp[lane] = i + lane < count ? stamping_.of(place_[start + i + lane]) : 0;
                }
                store_lanes(&low_[i], tag_low(stamp));
            }
            store_lanes(&high_[i], tag_high(load_lanes(&sequence_[start + i]), stamp));
        }
    }

    void sum_up(const DescribedKind& kind, std::size_t number, std::uint32_t count) {
        const DescribedTemplate::Sum& sum = kind.frame().sums()[number];
        for (std::uint32_t i = 0; i < count; i += kLanes) {
            Lanes total = load_lanes(&sums_[number][i]);
            for (std::size_t w = 0; w < sum.words.size(); ++w) {
                if (kind.varies_by_frame(w)) total = checksum_add64(total, load_lanes(&words_[w][i]) & sum.words[w]);
            }
            total = checksum_add64(total, load_lanes(&high_[i]) & sum.tag_high);
            if constexpr (Stamps) total += load_lanes(&low_[i]) & sum.tag_low;
            for (const std::size_t inner : sum.sums) total += load_lanes(&sums_[inner][i]);
            store_lanes(&sums_[number][i], sum.zero_as_ones ? checksum_finished_udp(total) : checksum_finished(total));
        }
    }

    void write(const DescribedKind& kind, std::uint32_t start, std::uint32_t count, rte_mbuf** frames) const {
        const DescribedTemplate& frame = kind.frame();
        const std::size_t tag_at = frame.frame().tag_at;
        for (std::uint32_t i = 0; i < count; ++i) {
            std::uint8_t* bytes = begin_of_frame(frames[place_[start + i]]);
            for (std::size_t w = 0; w < frame.words_at().size(); ++w) store(bytes + frame.words_at()[w], words_[w][i]);
            store(bytes + tag_at + tag::kHighAt, high_[i]);
            if constexpr (Stamps) store(bytes + tag_at + tag::kLowAt, low_[i]);
            for (std::size_t s = 0; s < frame.sums().size(); ++s)
                store(bytes + frame.sums()[s].at, static_cast<std::uint16_t>(sums_[s][i]));
        }
    }

    const DescribedFrames& frames_;
    StampColumn stamping_;
    Share share_;
    Stride stride_;
    FrameShelves shelves_;
    std::array<std::uint16_t, kMostKinds> starts_{}, counts_{};
    std::array<KindOrder::Place, kMaxBurst> drawn_{};
    std::array<rte_mbuf*, kMaxBurst> sorted_{};
    std::array<std::uint16_t, kRoom> place_{};
    alignas(kLanesAlignment) Column64 sequence_{}, number_{}, high_{};
    alignas(kLanesAlignment) std::array<std::uint16_t, kRoom> low_{};
    std::vector<Column64> words_, sums_;
};

}  // namespace dutperf
