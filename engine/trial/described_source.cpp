// SPDX-License-Identifier: Apache-2.0
#include "trial/described_source.hpp"

#include <algorithm>

namespace dutperf {

DescribedKind::DescribedKind(DescribedTemplate frame, std::uint32_t generation)
    : frame_(std::move(frame)),
      generation_(generation),
      flows_(frame_.flow_choice()),
      word_by_frame_(frame_.words().size()),
      row_size_(frame_.words().size() + frame_.sums().size()) {
    for (std::size_t i = 0; i < frame_.frame().fields.size(); ++i) {
        if (frame_.frame().fields[i].by_flow) continue;
        Field& field = by_frame_.emplace_back();
        field.number = i;
        std::ranges::copy_if(frame_.pieces(), std::back_inserter(field.pieces),
                             [i](const auto& piece) { return piece.field == i; });
        for (const auto& piece : field.pieces) word_by_frame_[piece.word] = true;
    }
    for (std::uint32_t flow = 0; flow < flows_.flows; ++flow) add_row(flow);
}

void DescribedKind::add_row(std::uint32_t flow) {
    std::vector<std::uint64_t> words = frame_.words();
    for (const DescribedTemplate::Piece& piece : frame_.pieces()) {
        const VaryingBits& field = frame_.frame().fields[piece.field];
        if (field.by_flow)
            words[piece.word] |= DescribedTemplate::piece_of(piece, field.value(flow, frame_.seed_of(piece.field)));
    }
    rows_.insert(rows_.end(), words.begin(), words.end());
    for (const DescribedTemplate::Sum& sum : frame_.sums()) {
        std::uint64_t total = sum.base;
        for (std::size_t w = 0; w < words.size(); ++w) {
            if (!word_by_frame_[w]) total = checksum_add64(total, words[w] & sum.words[w]);
        }
        rows_.push_back(checksum_fold(total));
    }
}

// Writes the templates into the buffers of the pool, of each kind about as many as its share, so that the loop need
// not.
DescribedFrames::DescribedFrames(rte_mempool* pool, std::vector<DescribedKind> kinds, KindOrder order)
    : pool_(pool), kinds_(std::move(kinds)), order_(std::move(order)) {
    if (order_.is_single()) {
        single_.emplace(pool_, kinds_.front().image());
        return;
    }
    for_each_at_home(pool_, [this, i = std::size_t{0}](rte_mbuf* buffer) mutable {
        kinds_[order_.order()[i++ % order_.order().size()]].image().write(buffer);
    });
}

FrameShelves::FrameShelves(const DescribedFrames& frames)
    : frames_(&frames), first_(frames.kinds().front().generation()), shelves_(frames.kinds().size()) {}

FrameShelves::~FrameShelves() {
    for (std::size_t kind = 0; kind < shelves_.size(); ++kind)
        rte_pktmbuf_free_bulk(shelves_[kind].data(), sizes_[kind]);
}

bool FrameShelves::take(const std::uint16_t* counts, std::uint32_t count, rte_mbuf** buffers) {
    if (!fetch(count)) return false;
    for (std::size_t kind = 0; kind < shelves_.size(); ++kind) {
        const std::uint32_t wanted = counts[kind];
        if (sizes_[kind] < wanted) [[unlikely]]
            rewrite(kind, wanted - sizes_[kind]);
        sizes_[kind] -= wanted;
        std::copy_n(shelves_[kind].data() + sizes_[kind], wanted, buffers);
        buffers += wanted;
    }
    waiting_ -= count;
    return true;
}

// Takes as many buffers from the pool as are needed, and some more until enough wait. Without any in the pool those
// that wait must do.
bool FrameShelves::fetch(std::uint32_t count) {
    constexpr std::uint32_t kMore = 64;
    const auto get = [this](std::uint32_t number) {
        if (rte_mempool_get_bulk(frames_->pool(), reinterpret_cast<void**>(fetched_.data()), number) != 0) return false;
        sort(fetched_.data(), number);
        return true;
    };
    return (waiting_ + kMore <= kStock && get(count + kMore)) || (waiting_ <= kStock && get(count)) ||
           waiting_ >= count;
}

void FrameShelves::sort(rte_mbuf** buffers, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) prefetch_frame(buffers[i]);
    for (std::uint32_t i = 0; i < count; ++i) {
        rte_mbuf* buffer = buffers[i];
        std::size_t kind = buffer->hash.usr - first_;
        if (kind >= shelves_.size() || !frames_->kinds()[kind].image().is_in(buffer)) [[unlikely]] {
            kind = 0;
            frames_->kinds()[0].image().write(buffer);
        }
        shelves_[kind][sizes_[kind]++] = buffer;
    }
    waiting_ += count;
}

// Writes the kind's template into `count` buffers of the fullest other shelves.
void FrameShelves::rewrite(std::size_t kind, std::uint32_t count) {
    for (; count > 0; --count) {
        std::size_t fullest = kind == 0 ? 1 : 0;
        for (std::size_t other = 0; other < shelves_.size(); ++other) {
            if (other != kind && sizes_[other] > sizes_[fullest]) fullest = other;
        }
        rte_mbuf* buffer = shelves_[fullest][--sizes_[fullest]];
        frames_->kinds()[kind].image().write(buffer);
        shelves_[kind][sizes_[kind]++] = buffer;
    }
}

}  // namespace dutperf
