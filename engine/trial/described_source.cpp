// SPDX-License-Identifier: Apache-2.0
#include "trial/described_source.hpp"

#include <algorithm>

namespace dutperf {

// Writes the templates into the buffers of the pool, of each family about as many as its share, so that the loop need
// not.
DescribedFrames::DescribedFrames(const PathPool& pool, std::vector<DescribedKind> kinds, KindOrder order)
    : pool_(pool), kinds_(std::move(kinds)), order_(std::move(order)), families_(FrameFamily::split(kinds_)) {
    for (std::size_t family = 0; family < families_.size(); ++family) {
        const std::vector<std::size_t>& of_family = families_[family].kinds();
        for (std::size_t place = 0; place < of_family.size(); ++place)
            members_[of_family[place]] = {static_cast<std::uint8_t>(family), static_cast<std::uint8_t>(place)};
    }
    if (families_.size() == 1) {
        joint_.emplace(pool_, families_.front().image());
        return;
    }
    if (pool_.is_shared) return;
    for_each_at_home(pool_.pool, [this, i = std::size_t{0}](rte_mbuf* buffer) mutable {
        families_[members_[order_.order()[i++ % order_.order().size()]].family].image().write(buffer);
    });
}

bool DescribedFrames::follow_from_kind() const {
    return !order_.is_random() && std::ranges::all_of(kinds_, [](const DescribedKind& kind) {
        return kind.flows().flows == 1 && kind.form().fields.empty();
    });
}

FrameShelves::FrameShelves(const DescribedFrames& frames)
    : frames_(&frames),
      stock_(frames.pool().is_shared ? 0 : kStock),
      first_(frames.kinds().front().generation()),
      shelves_(frames.families().size()) {
    family_of_.fill(kMostKinds);  // none
    for (std::size_t family = 0; family < shelves_.size(); ++family)
        family_of_[frames.families()[family].image().generation - first_] = static_cast<std::uint8_t>(family);
}

FrameShelves::~FrameShelves() {
    for (std::size_t family = 0; family < shelves_.size(); ++family)
        rte_pktmbuf_free_bulk(shelves_[family].data(), sizes_[family]);
}

bool FrameShelves::take(const std::uint16_t* counts, std::uint32_t count, rte_mbuf** buffers) {
    if (!fetch(count)) return false;
    for (std::size_t family = 0; family < shelves_.size(); ++family) {
        const std::uint32_t wanted = counts[family];
        if (sizes_[family] < wanted) [[unlikely]]
            rewrite(family, wanted - sizes_[family]);
        sizes_[family] -= wanted;
        std::copy_n(shelves_[family].data() + sizes_[family], wanted, buffers);
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
        if (rte_mempool_get_bulk(frames_->pool().pool, reinterpret_cast<void**>(fetched_.data()), number) != 0)
            return false;
        sort(fetched_.data(), number);
        return true;
    };
    return (waiting_ + kMore <= stock_ && get(count + kMore)) || (waiting_ <= stock_ && get(count)) ||
           waiting_ >= count;
}

void FrameShelves::sort(rte_mbuf** buffers, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) prefetch_frame(buffers[i]);
    for (std::uint32_t i = 0; i < count; ++i) {
        rte_mbuf* buffer = buffers[i];
        const std::uint32_t generation = buffer->hash.usr - first_;
        std::size_t family = generation < kMostKinds ? family_of_[generation] : kMostKinds;
        if (family == kMostKinds || !frames_->families()[family].image().is_in(buffer)) [[unlikely]] {
            family = 0;
            frames_->families()[0].image().write(buffer);
        }
        shelves_[family][sizes_[family]++] = buffer;
    }
    waiting_ += count;
}

// Writes the family's template into `count` buffers of the fullest other shelves.
void FrameShelves::rewrite(std::size_t family, std::uint32_t count) {
    for (; count > 0; --count) {
        std::size_t fullest = family == 0 ? 1 : 0;
        for (std::size_t other = 0; other < shelves_.size(); ++other) {
            if (other != family && sizes_[other] > sizes_[fullest]) fullest = other;
        }
        rte_mbuf* buffer = shelves_[fullest][--sizes_[fullest]];
        frames_->families()[family].image().write(buffer);
        shelves_[family][sizes_[family]++] = buffer;
    }
}

}  // namespace dutperf
