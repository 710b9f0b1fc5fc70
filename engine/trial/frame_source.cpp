// SPDX-License-Identifier: Apache-2.0
#include "trial/frame_source.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

namespace dutperf {

std::uint32_t next_generation() {
    static std::uint32_t generation = 0;
    return ++generation;
}

void FrameImage::describe(rte_mbuf& buffer, std::uint16_t offset, std::uint32_t length, std::uint32_t generation) {
    buffer.data_off = offset;
    buffer.data_len = static_cast<std::uint16_t>(length);
    buffer.pkt_len = length;
    buffer.hash.usr = generation;
}

void FrameImage::write(rte_mbuf* buffer) const {
    describe(*buffer);
    std::memcpy(begin_of_frame(buffer), data, length);
    buffer->ol_flags = 0;
}

FrameImage FrameImage::of(const FrameTemplate& frame, std::uint32_t generation) {
    return {.data = frame.data(), .length = frame.length(), .generation = generation};
}

void for_each_at_home(rte_mempool* pool, const std::function<void(rte_mbuf*)>& visit) {
    std::vector<rte_mbuf*> home(rte_mempool_avail_count(pool));
    std::size_t count = 0;
    while (count < home.size() && rte_mempool_get(pool, reinterpret_cast<void**>(&home[count])) == 0) ++count;
    home.resize(count);
    for (rte_mbuf* buffer : home) visit(buffer);
    rte_mempool_put_bulk(pool, reinterpret_cast<void* const*>(home.data()), static_cast<unsigned>(count));
}

ImagePool::Expected ImagePool::expected(const FrameImage& image) {
    constexpr std::size_t kFrom = offsetof(rte_mbuf, rearm_data), kTo = kFrom + sizeof(Description);
    static_assert(std::min({offsetof(rte_mbuf, data_off), offsetof(rte_mbuf, pkt_len), offsetof(rte_mbuf, data_len),
                            offsetof(rte_mbuf, hash.usr)}) >= kFrom);
    static_assert(std::max({offsetof(rte_mbuf, data_off), offsetof(rte_mbuf, pkt_len), offsetof(rte_mbuf, data_len),
                            offsetof(rte_mbuf, hash.usr)}) < kTo);
    rte_mbuf values{}, mask{};
    image.describe(values);
    FrameImage::describe(mask, 0xFFFF, image.any_length ? 0 : 0xFFFFFFFF, 0xFFFFFFFF);
    return {.values = description_of(&values), .mask = description_of(&mask)};
}

void ImagePool::prepare(std::span<rte_mbuf* const> buffers) const {
    for (rte_mbuf* buffer : buffers) {
        if (differs(description_of(buffer) ^ expected_.values)) image_.write(buffer);
    }
}

StampChoice StampChoice::of(const TrialSpec& spec, Direction direction) {
    if (spec.stamping != Stamping::tagged) return every();
    const std::uint64_t first = spec.due_before(direction, spec.tagging.after_ns);
    const std::uint64_t span = spec.intended(direction) - first;
    return tagged(std::min(spec.tagging.count, span), first, span,
                  generator_seed(spec.seed, direction, Generator::tags));
}

}  // namespace dutperf
