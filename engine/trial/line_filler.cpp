// SPDX-License-Identifier: Apache-2.0
#include "trial/line_filler.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "frame/bytes.hpp"

namespace dutperf {

namespace {

// IEEE 802's EtherType for local experiments, then a text, then the path.
constexpr std::array<std::uint8_t, 2> kEtherType{0x88, 0xB5};
constexpr std::string_view kText = "dutperf filler ";
constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::vector<std::uint8_t> mark(std::size_t path) {
    std::vector<std::uint8_t> bytes(kEtherType.size() + kText.size() + 3);
    const auto text = std::ranges::copy(kEtherType, bytes.begin()).out;
    *std::ranges::copy(kText, text).out = path % 2 != 0 ? 'r' : 'f';
    store_be16(&bytes[bytes.size() - 2], static_cast<std::uint16_t>(path / 2));
    return bytes;
}

FrameImage image_of(std::array<std::uint8_t, kLongestFiller>& bytes, const LineFillerParts& parts) {
    bytes.fill(0);
    std::ranges::copy(parts.destination, bytes.begin());
    std::ranges::copy(parts.source, bytes.begin() + parts.destination.size());
    std::ranges::copy(mark(parts.path), bytes.begin() + ethernet::kType);
    return {.data = bytes.data(),
            .length = static_cast<std::uint16_t>(parts.longest_length),
            .generation = parts.generation,
            .any_length = true};
}

}  // namespace

Marks filler_marks(std::size_t path) { return {{.at = ethernet::kType, .bytes = mark(path)}}; }

LineFiller::LineFiller(const LineFillerParts& parts)
    : pool_(parts.pool, image_of(bytes_, parts)),
      plan_(on_line(parts.longest_length)),
      watch_(parts.ring, static_cast<double>(parts.clock_hz) / static_cast<double>(parts.line_hz),
             parts.clock_difference),
      line_hz_(parts.line_hz),
      clock_hz_(parts.clock_hz),
      burst_(parts.burst),
      additional_(parts.additional) {}

std::uint64_t LineFiller::start(Ticks start) {
    start_ = start;
    begins_ = start - static_cast<Ticks>(kLineLeadS * static_cast<double>(clock_hz_));
    lead_ = static_cast<std::uint64_t>(kLineLeadS * static_cast<double>(line_hz_));
    if (additional_ != nullptr) additional_->start(lead_);
    return lead_;
}

bool LineFiller::place_reply(rte_ring* control, rte_mbuf** burst) {
    void* reply = nullptr;
    if (rte_ring_empty(control) != 0 || rte_ring_dequeue(control, &reply) != 0) [[likely]]
        return false;
    place(burst, static_cast<rte_mbuf*>(reply), Kind::reply);
    return true;
}

bool LineFiller::place_next(std::uint64_t next, rte_mbuf** burst) {
    const std::uint64_t due = waiting() != 0 ? dues_[made_from_] : kNever;
    std::uint64_t until = due;
    if (additional_ != nullptr) [[unlikely]] {
        if (const std::optional<std::size_t> kind = additional_->due(plan_.place(), next)) {
            rte_mbuf* frame = additional_->make(*kind);
            if (frame == nullptr) return false;
            place(burst, frame, Kind::additional).of_kind = *kind;
            additional_->advance(*kind);
            return true;
        }
        until = std::min(until, additional_->next_due());
    }
    const std::uint32_t length = plan_.filler_before(until);
    if (length == 0) {
        place(burst, made_[made_from_++], Kind::frame).due = due;
        return true;
    }
    rte_mbuf* filler = make_filler(length);
    if (filler == nullptr) return false;
    place(burst, filler, Kind::filler);
    return true;
}

LineFiller::Item& LineFiller::place(rte_mbuf** burst, rte_mbuf* frame, Kind kind) {
    // a card or its driver pads shorter frames
    const std::uint32_t length = on_line(std::max<std::uint32_t>(frame->pkt_len, kMinEthernetLength));
    burst[count_] = frame;
    Item& item = items_[count_++];
    item = {.kind = kind, .length = length, .place = plan_.place()};
    plan_.add(length);
    return item;
}

rte_mbuf* LineFiller::make_filler(std::uint32_t length) {
    rte_mbuf* filler = nullptr;
    if (!pool_.take(&filler, 1)) return nullptr;
    const std::uint32_t bytes = length - on_line(0);
    filler->data_len = static_cast<std::uint16_t>(bytes);
    filler->pkt_len = bytes;
    return filler;
}

void LineFiller::drop_waiting() {
    rte_pktmbuf_free_bulk(&made_[made_from_], waiting());
    made_from_ = made_count_ = 0;
}

}  // namespace dutperf
