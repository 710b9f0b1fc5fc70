// SPDX-License-Identifier: Apache-2.0
#include "trial/frame_source.hpp"

#include <cstring>
#include <vector>

namespace dutperf {

void FramePool::write_template(rte_mbuf* buffer) {
    buffer->data_off = RTE_PKTMBUF_HEADROOM;
    buffer->data_len = frame_.length();
    buffer->pkt_len = frame_.length();
    std::memcpy(begin_of(buffer), frame_.data(), frame_.length());
    buffer->hash.usr = generation_;
    buffer->ol_flags = 0;
    if (frame_.checksums_by_hardware()) leave_checksums_to_hardware(buffer);
}

void FramePool::leave_checksums_to_hardware(rte_mbuf* buffer) const {
    buffer->l2_len = ethernet::kSize;
    buffer->l3_len = (frame_.is_ipv6() ? ipv6::kSize : ipv4::kSize) & 0x1FFU;
    buffer->ol_flags = RTE_MBUF_F_TX_UDP_CKSUM | (frame_.is_ipv6() ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
}

// Writes the template into every buffer that is at home, so that the loop need not. The order of the pool stays as it was.
void FramePool::prefill() {
    std::vector<rte_mbuf*> home(rte_mempool_avail_count(pool_));
    std::size_t count = 0;
    while (count < home.size() && rte_mempool_get(pool_, reinterpret_cast<void**>(&home[count])) == 0) {
        prepare(home[count]);
        ++count;
    }
    rte_mempool_put_bulk(pool_, reinterpret_cast<void* const*>(home.data()), static_cast<unsigned>(count));
}

StampChoice StampChoice::of(const TrialSpec& spec, Direction direction) {
    if (spec.stamping != Stamping::tagged) return every();
    const std::uint64_t first = spec.due_before(direction, spec.tagging.after_ns);
    return tagged(spec.tagging.count, first, spec.intended(direction) - first, generator_seed(spec.seed, direction, Generator::tags));
}

}  // namespace dutperf
