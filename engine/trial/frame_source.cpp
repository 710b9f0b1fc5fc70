// SPDX-License-Identifier: Apache-2.0
#include "trial/frame_source.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

namespace dutperf {

void FramePool::describe(rte_mbuf& buffer, std::uint16_t offset, std::uint32_t length, std::uint32_t generation) {
    buffer.data_off = offset;
    buffer.data_len = static_cast<std::uint16_t>(length);
    buffer.pkt_len = length;
    buffer.hash.usr = generation;
}

FramePool::Expected FramePool::expected(std::uint16_t length, std::uint32_t generation) {
    constexpr std::size_t kFrom = offsetof(rte_mbuf, rearm_data), kTo = kFrom + sizeof(Description);
    static_assert(std::min({offsetof(rte_mbuf, data_off), offsetof(rte_mbuf, pkt_len), offsetof(rte_mbuf, data_len),
                            offsetof(rte_mbuf, hash.usr)}) >= kFrom);
    static_assert(std::max({offsetof(rte_mbuf, data_off), offsetof(rte_mbuf, pkt_len), offsetof(rte_mbuf, data_len),
                            offsetof(rte_mbuf, hash.usr)}) < kTo);
    rte_mbuf values{}, mask{};
    describe(values, RTE_PKTMBUF_HEADROOM, length, generation);
    describe(mask, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF);
    return {.values = description_of(&values), .mask = description_of(&mask)};
}

void FramePool::prepare(std::span<rte_mbuf* const> buffers) {
    for (rte_mbuf* buffer : buffers) {
        if (differs(description_of(buffer) ^ expected_.values)) write_template(buffer);
    }
}

void FramePool::write_template(rte_mbuf* buffer) {
    describe(*buffer, RTE_PKTMBUF_HEADROOM, frame_.length(), generation_);
    std::memcpy(begin_of(buffer), frame_.data(), frame_.length());
    buffer->ol_flags = 0;
    if (frame_.checksums_by_hardware()) leave_checksums_to_hardware(buffer);
}

void FramePool::leave_checksums_to_hardware(rte_mbuf* buffer) const {
    const Layout& layout = frame_.layout();
    buffer->l2_len = layout.ip_at() & 0x7FU;
    buffer->l3_len = (layout.transport_at() - layout.ip_at()) & 0x1FFU;
    buffer->ol_flags =
        RTE_MBUF_F_TX_UDP_CKSUM | (layout.ipv6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
}

// Writes the template into every buffer that is in the pool, so that the loop need not. The order of the pool does not
// change.
void FramePool::prefill() {
    std::vector<rte_mbuf*> home(rte_mempool_avail_count(pool_));
    std::size_t count = 0;
    while (count < home.size() && rte_mempool_get(pool_, reinterpret_cast<void**>(&home[count])) == 0) ++count;
    prepare({home.data(), count});
    rte_mempool_put_bulk(pool_, reinterpret_cast<void* const*>(home.data()), static_cast<unsigned>(count));
}

StampChoice StampChoice::of(const TrialSpec& spec, Direction direction) {
    if (spec.stamping != Stamping::tagged) return every();
    const std::uint64_t first = spec.due_before(direction, spec.tagging.after_ns);
    return tagged(spec.tagging.count, first, spec.intended(direction) - first,
                  generator_seed(spec.seed, direction, Generator::tags));
}

}  // namespace dutperf
