// SPDX-License-Identifier: Apache-2.0
// Makes the frames of a stream of described frames (flow/described_frame.hpp): of several kinds, with any fields that
// vary. Like FrameSource it takes buffers that already hold the template and writes only what varies.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "flow/described_frame.hpp"
#include "flow/kind_order.hpp"
#include "pace/share.hpp"
#include "trial/connection_columns.hpp"
#include "trial/departures.hpp"
#include "trial/frame_family.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

// All kinds of a direction and the buffers for them. Several senders may use it.
class DescribedFrames {
public:
    DescribedFrames(const PathPool& pool, std::vector<DescribedKind> kinds, KindOrder order);
    DescribedFrames(const DescribedFrames&) = delete;  // the images are in its own families
    DescribedFrames& operator=(const DescribedFrames&) = delete;

    [[nodiscard]] const PathPool& pool() const { return pool_; }
    [[nodiscard]] const std::vector<DescribedKind>& kinds() const { return kinds_; }
    [[nodiscard]] const KindOrder& order() const { return order_; }
    [[nodiscard]] const std::vector<FrameFamily>& families() const { return families_; }
    // Where a kind is: in which family, and its place there.
    struct Member {
        std::uint8_t family, place;
    };
    [[nodiscard]] Member member(std::size_t kind) const { return members_[kind]; }
    // The buffers, if there is one family only.
    [[nodiscard]] const std::optional<ImagePool>& joint() const { return joint_; }
    // Whether the bytes of a frame follow from its kind alone, but for tag and checksums.
    [[nodiscard]] bool follow_from_kind() const;

private:
    PathPool pool_;
    std::vector<DescribedKind> kinds_;
    KindOrder order_;
    std::vector<FrameFamily> families_;
    std::array<Member, kMostKinds> members_{};
    std::optional<ImagePool> joint_;
};

// Buffers of one sender by family. A pool gives any buffers; those that hold another family's template than is needed
// wait for it here, so that templates are seldom written again. Buffers are sorted without branches: their families
// cannot be predicted.
class FrameShelves {
public:
    explicit FrameShelves(const DescribedFrames& frames);
    ~FrameShelves();
    FrameShelves(const FrameShelves&) = delete;
    FrameShelves& operator=(const FrameShelves&) = delete;

    // Takes `counts[family]` buffers of each family, one family after the other, `count` in all; or none.
    bool take(const std::uint16_t* counts, std::uint32_t count, rte_mbuf** buffers);

private:
    static constexpr std::uint32_t kStock = 512;  // buffers that may wait, not of a shared pool
    using Shelf = std::array<rte_mbuf*, kStock + 2 * kMaxBurst>;

    bool fetch(std::uint32_t count);
    void sort(rte_mbuf** buffers, std::uint32_t count);
    void rewrite(std::size_t family, std::uint32_t count);

    const DescribedFrames* frames_;
    std::uint32_t stock_;
    std::uint32_t first_;                               // generation of the first kind
    std::array<std::uint8_t, kMostKinds> family_of_{};  // by generation
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
    std::optional<ConnectionParts> connections = {};  // if some kind belongs to connections
};

// The flows of the frames of a kind, which mostly follow each other: then they need no division.
class FlowWalk {
public:
    explicit FlowWalk(const FlowChoice& flows) : flows_(flows) {}

    std::uint32_t of(std::uint64_t number) {
        if (flows_.flows == 1) return 0;
        if (flows_.random) return flows_.of(number);
        const std::uint32_t flow = number == next_number_ ? next_flow_ : begin(number);
        next_number_ = number + 1 == turn_.end ? kNone : number + 1;
        next_flow_ = flow + 1 == turn_.flows ? 0 : flow + 1;
        return flow;
    }
    [[nodiscard]] const FlowChoice& flows() const { return flows_; }

private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    std::uint32_t begin(std::uint64_t number) {
        if (!flows_.begins) return flows_.of(number);
        if (number < turn_.first || number >= turn_.end) turn_ = flows_.turn(number);
        return turn_.of(number);
    }

    FlowChoice flows_;
    FlowTurn turn_{.end = flows_.begins ? 0 : kNone, .flows = flows_.flows};  // of the next frame
    std::uint64_t next_number_ = kNone;
    std::uint32_t next_flow_ = 0;
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
        if (parts.connections) connections_.emplace(*parts.connections, share_.stride, frames_.families());
        for (const DescribedKind& kind : frames_.kinds()) walks_.emplace_back(kind.flows());
        for (std::size_t i = 0; i < place_.size(); ++i) place_[i] = static_cast<std::uint16_t>(i);
        if (frames_.joint() && frames_.follow_from_kind()) plan_cycle();
    }

    // See FrameSource::make.
    bool make(std::uint64_t j, std::uint32_t count, std::uint64_t stamp, rte_mbuf** frames,
              const Ticks* stamps = nullptr) {
        const bool joint = frames_.joint().has_value();
        const std::uint64_t k = share_.number(j);
        joint ? arrange(j, count) : sort(k, count);
        if (!(joint ? frames_.joint()->take(frames, count) : take(count, frames))) return false;
        if constexpr (Stamps) stamping_.fill(k, share_.stride, count, stamp, stamps);
        if (connections_) [[unlikely]]
            connections_->fill(k, count);
        if (joint) {
            fill(frames_.families().front(), {0, count}, frames);
            return true;
        }
        for (std::size_t family = 0; family < frames_.families().size(); ++family) {
            if (counts_[family] == 0) continue;
            const Group group{starts_[family], counts_[family]};
            find_rows(group);
            fill(frames_.families()[family], group, &sorted_[group.start]);
        }
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return stamping_.stamped(); }
    // Of the i-th frame of the last burst.
    [[nodiscard]] bool has_stamp(std::size_t i) const { return stamping_.of(i) != 0; }

private:
    static constexpr std::size_t kRoom = kMaxBurst + kLanes;
    using Column64 = std::array<std::uint64_t, kRoom>;
    using Row = const std::uint64_t*;

    // Frames of a family: adjacent ones of the sorted burst.
    struct Group {
        std::uint32_t start, count;
    };

    // If kinds are in turn, so are the rows: they are listed once, for a burst from any place on.
    void plan_cycle() {
        const std::size_t turn = frames_.order().order().size();
        const std::size_t period = turn / std::gcd(turn, share_.stride);
        for (std::size_t j = 0; j < period + kRoom; ++j)
            cycle_.push_back(first_row(frames_.order().of(share_.number(j)).kind));
        period_ = period;
    }
    [[nodiscard]] Row first_row(std::size_t kind) const {
        const DescribedFrames::Member member = frames_.member(kind);
        return frames_.families()[member.family].row(member.place, 0);
    }
    [[nodiscard]] Row row_of(std::size_t kind, std::uint64_t number) {
        const DescribedFrames::Member member = frames_.member(kind);
        return frames_.families()[member.family].row(member.place, walks_[kind].of(number));
    }

    // Finds the rows of a burst of one family.
    void arrange(std::uint64_t j, std::uint32_t count) {
        const std::uint64_t k = share_.number(j);
        for (std::uint32_t i = 0; i < count; i += kLanes) {
            const Lanes numbers = stride_.lanes(k, i);
            store_lanes(&sequence_[i], numbers);
            store_lanes(&number_[i], numbers);
        }
        if (period_ != 0) {
            rows_ = &cycle_[j % period_];
        } else if (frames_.order().is_single()) {
            rows_of_one_kind(k, count);
        } else {
            frames_.order().walk(k, share_.stride, count, [this](std::uint32_t i, const KindOrder::Place& place) {
                kind_[i] = place.kind;
                number_[i] = place.number;
            });
            find_rows({0, count});
        }
    }

    // Flows in turn have adjacent rows.
    void rows_of_one_kind(std::uint64_t k, std::uint32_t count) {
        const FlowChoice& choice = walks_.front().flows();
        if (choice.flows == 1) return;
        if (choice.random || choice.begins || share_.stride != 1) return find_rows({0, count});
        const FrameFamily& family = frames_.families().front();
        const std::uint64_t size = family.row_size() * sizeof(std::uint64_t);
        const Lanes steps = Stride(size).lanes(0, 0);
        auto flow = static_cast<std::uint32_t>(k % choice.flows);
        for (std::uint32_t i = 0; i < count; flow = 0) {
            const std::uint32_t run = std::min(count - i, choice.flows - flow);
            Lanes at = reinterpret_cast<std::uintptr_t>(family.row(0, flow)) + steps;
            for (std::uint32_t lane = 0; lane < run; lane += kLanes, at += kLanes * size)
                store_lanes(reinterpret_cast<std::uint64_t*>(&row_[i + lane]), at);
            i += run;
        }
        end_rows({0, count});
    }

    void find_rows(const Group& group) {
        for (std::uint32_t i = group.start; i < group.start + group.count; ++i) row_[i] = row_of(kind_[i], number_[i]);
        end_rows(group);
    }

    // Lanes behind the last frame are computed too: they need any row.
    void end_rows(const Group& group) {
        rows_ = &row_[group.start];
        std::fill_n(&row_[group.start + group.count], kLanes, row_[group.start]);
    }

    // Sorts a burst by families: of each frame its place in the burst, its kind, its number, and its number among its
    // kind.
    void sort(std::uint64_t k, std::uint32_t count) {
        counts_.fill(0);
        frames_.order().walk(k, share_.stride, count, [this](std::uint32_t i, const KindOrder::Place& place) {
            drawn_[i] = place;
            ++counts_[frames_.member(place.kind).family];
        });
        std::array<std::uint16_t, kMostKinds> next{};
        for (std::size_t family = 1; family < kMostKinds; ++family)
            next[family] = static_cast<std::uint16_t>(next[family - 1] + counts_[family - 1]);
        starts_ = next;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint16_t at = next[frames_.member(drawn_[i].kind).family]++;
            place_[at] = static_cast<std::uint16_t>(i);
            sequence_[at] = k + i * share_.stride;
            number_[at] = drawn_[i].number;
            kind_[at] = drawn_[i].kind;
        }
    }

    // Takes buffers of every family, or none at all.
    bool take(std::uint32_t count, rte_mbuf** frames) {
        if (!shelves_.take(counts_.data(), count, sorted_.data())) return false;
        for (std::uint32_t i = 0; i < count; ++i) frames[place_[i]] = sorted_[i];
        return true;
    }

    // Computes what varies in frames of a family, and writes it and their rows.
    void fill(const FrameFamily& family, const Group& group, rte_mbuf* const* buffers) {
        const FrameForm& form = family.form();
        words_.resize(std::max(words_.size(), form.words_at.size()));
        sums_.resize(std::max(sums_.size(), form.sums.size()));
        for (std::size_t w = 0; w < form.words_at.size(); ++w) {
            for (std::uint32_t i = 0; i < group.count; i += kLanes)
                store_lanes(&words_[w][i], in_rows(family, family.words_in_row() + w, i));
        }
        for (std::size_t field = 0; field < form.fields.size(); ++field) vary(form.fields[field], field, group);
        number_tags(group);
        for (std::size_t sum = 0; sum < form.sums.size(); ++sum) sum_up(family, sum, group.count);
        write(family, group.count, buffers);
    }

    // A word of the rows of consecutive frames.
    [[nodiscard]] Lanes in_rows(const FrameFamily& family, std::size_t offset, std::uint32_t i) const {
        return family.has_one_row() ? family.row(0, 0)[offset] + Lanes{} : gather_lanes(rows_ + i, offset);
    }

    // Puts the values of a field into the words.
    void vary(const FrameForm::Field& field, std::size_t number, const Group& group) {
        const Halves values =
            field.bits.source == FieldSource::number ? evaluate(field, number, group) : look_up(field, group);
        const bool wide = field.bits.bits > 64;
        for (const DescribedTemplate::Piece& piece : field.pieces) {
            Column64& word = words_[piece.word];
            for (std::uint32_t i = 0; i < group.count; i += kLanes) {
                const Lanes high = wide ? load_lanes(values.high + i) : Lanes{};
                const Lanes varied = DescribedTemplate::piece_of(piece, load_lanes(values.low + i), high);
                store_lanes(&word[i], load_lanes(&word[i]) | varied);
            }
        }
    }

    // Columns of both halves of values; the upper ones are undefined if the field has no more than 64 bits.
    struct Halves {
        const std::uint64_t *low, *high;
    };

    [[nodiscard]] Halves look_up(const FrameForm::Field& field, const Group& group) {
        const ConnectionColumns::Values& values = connections_->values(field.bits);
        if (frames_.joint()) return {values.low.data(), values.high.data()};
        for (std::uint32_t i = 0; i < group.count; ++i) {
            const std::uint16_t place = place_[group.start + i];
            value_low_[i] = values.low[place];
            value_high_[i] = values.high[place];
        }
        return {value_low_.data(), value_high_.data()};
    }

    [[nodiscard]] Halves evaluate(const FrameForm::Field& field, std::size_t number, const Group& group) {
        const auto seed_of = [&](std::uint32_t i) { return frames_.kinds()[kind_[group.start + i]].seed_of(number); };
        if (field.lanes) {
            if (field.lanes->is_random()) {
                for (std::uint32_t i = 0; i < group.count; ++i) seeds_[i] = seed_of(i);
            }
            field.lanes->fill(&number_[group.start], seeds_.data(), group.count, value_low_.data());
            if (field.bits.bits > 64) std::fill_n(value_high_.data(), group.count + kLanes, field.lanes->high());
        } else {
            for (std::uint32_t i = 0; i < group.count; ++i) {
                const Number128 value = field.bits.value(number_[group.start + i], seed_of(i));
                value_low_[i] = static_cast<std::uint64_t>(value);
                value_high_[i] = static_cast<std::uint64_t>(value >> 64U);
            }
        }
        return {value_low_.data(), value_high_.data()};
    }

    void number_tags(const Group& group) {
        for (std::uint32_t i = 0; i < group.count; i += kLanes) {
            Lanes stamp{};
            if constexpr (Stamps) {
                if (frames_.joint()) {
                    stamp = stamping_.lanes(i);
                } else {
                    for (std::size_t lane = 0; lane < kLanes; ++lane)
                        stamp[lane] = i + lane < group.count ? stamping_.of(place_[group.start + i + lane]) : 0;
                }
                store_lanes(&low_[i], tag_low(stamp));
            }
            store_lanes(&high_[i], tag_high(load_lanes(&sequence_[group.start + i]), stamp));
        }
    }

    void sum_up(const FrameFamily& family, std::size_t number, std::uint32_t count) {
        const FrameForm::Sum& sum = family.form().sums[number];
        for (std::uint32_t i = 0; i < count; i += kLanes) {
            Lanes total = in_rows(family, family.sums_in_row() + number, i);
            for (std::size_t w = 0; w < sum.words.size(); ++w)
                total = checksum_add64(total, load_lanes(&words_[w][i]) & sum.words[w]);
            total = checksum_add64(total, load_lanes(&high_[i]) & sum.tag_high);
            if constexpr (Stamps) total += load_lanes(&low_[i]) & sum.tag_low;
            for (const std::size_t inner : sum.sums) total += load_lanes(&sums_[inner][i]);
            store_lanes(&sums_[number][i], sum.zero_as_ones ? checksum_finished_udp(total) : checksum_finished(total));
        }
    }

    // Column by column: the parts of a frame are in no order, and some in parts that were written before.
    void write(const FrameFamily& family, std::uint32_t count, rte_mbuf* const* buffers) {
        for (std::uint32_t i = 0; i < count; ++i) bytes_[i] = begin_of_frame(buffers[i]);
        if (!family.has_one_row()) write_rows(family, count, buffers);
        const FrameForm& form = family.form();
        for (std::size_t w = 0; w < form.words_at.size(); ++w)
            write_at<std::uint64_t>(form.words_at[w], words_[w], count);
        write_at<std::uint64_t>(form.tag_at + tag::kHighAt, high_, count);
        if constexpr (Stamps) write_at<std::uint16_t>(form.tag_at + tag::kLowAt, low_, count);
        for (std::size_t s = 0; s < form.sums.size(); ++s) write_at<std::uint16_t>(form.sums[s].at, sums_[s], count);
    }

    template <class Value, class From>
    void write_at(std::size_t at, const std::array<From, kRoom>& values, std::uint32_t count) const {
        for (std::uint32_t i = 0; i < count; ++i) store(bytes_[i] + at, static_cast<Value>(values[i]));
    }

    // The number of words of the only stretch is known to the compiler: it is copied without a loop.
    void write_rows(const FrameFamily& family, std::uint32_t count, rte_mbuf* const* buffers) const {
        const std::vector<FrameFamily::Stretch>& stretches = family.stretches();
        if (stretches.size() != 1) return write_rows<kAnyStretches>(family, count, buffers);
        switch (stretches.front().words) {
            case 1: return write_rows<1>(family, count, buffers);
            case 2: return write_rows<2>(family, count, buffers);
            case 4: return write_rows<4>(family, count, buffers);
            default: return write_rows<8>(family, count, buffers);
        }
    }

    template <std::size_t Words>
    void write_rows(const FrameFamily& family, std::uint32_t count, rte_mbuf* const* buffers) const {
        const std::size_t at = Words != kAnyStretches ? family.stretches().front().at : 0,
                          lengths_at = family.lengths_in_row();
        const bool lengths = family.has_lengths();
        for (std::uint32_t i = 0; i < count; ++i) {
            const Row row = rows_[i];
            if constexpr (Words == kAnyStretches)
                copy_stretches(family.stretches(), row, bytes_[i]);
            else
                std::memcpy(bytes_[i] + at, row, Words * sizeof(std::uint64_t));
            if (lengths) FrameFamily::write_lengths(buffers[i], row[lengths_at]);
        }
    }

    static void copy_stretches(const std::vector<FrameFamily::Stretch>& stretches, Row row, std::uint8_t* bytes) {
        for (const FrameFamily::Stretch& stretch : stretches) {
            for (std::size_t w = 0; w < stretch.words; ++w) store(bytes + stretch.at + w * sizeof *row, *row++);
        }
    }

    static constexpr std::size_t kAnyStretches = 16;

    const DescribedFrames& frames_;
    StampColumn stamping_;
    Share share_;
    Stride stride_;
    FrameShelves shelves_;
    std::optional<ConnectionColumns> connections_;
    std::vector<FlowWalk> walks_;
    std::vector<Row> cycle_;
    std::size_t period_ = 0;  // 0: rows do not follow from a frame's place in the cycle
    std::array<std::uint16_t, kMostKinds> starts_{}, counts_{};
    std::array<KindOrder::Place, kMaxBurst> drawn_{};
    std::array<rte_mbuf*, kMaxBurst> sorted_{};
    std::array<std::uint16_t, kRoom> place_{};
    std::array<std::uint8_t, kRoom> kind_{};
    std::array<std::uint8_t*, kRoom> bytes_{};  // of the group's frames
    alignas(kLanesAlignment) std::array<Row, kRoom> row_{};
    const Row* rows_ = nullptr;  // of the group that is filled
    alignas(kLanesAlignment) Column64 sequence_{}, number_{}, high_{}, seeds_{}, value_low_{}, value_high_{};
    alignas(kLanesAlignment) std::array<std::uint16_t, kRoom> low_{};
    std::vector<Column64> words_, sums_;
};

}  // namespace dutperf
