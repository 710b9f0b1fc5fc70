// SPDX-License-Identifier: Apache-2.0
#include "flow/kind_order.hpp"

#include <algorithm>

namespace dutperf {

KindOrder::KindOrder(std::vector<std::uint8_t> order) : order_(std::move(order)) { number_places(); }

KindOrder::KindOrder(const std::vector<std::uint32_t>& shares, std::uint64_t seed) : random_(true), seed_(seed) {
    for (std::size_t kind = 0; kind < shares.size(); ++kind)
        order_.insert(order_.end(), shares[kind], static_cast<std::uint8_t>(kind));
    number_places();
}

void KindOrder::number_places() {
    in_turn_.assign(std::size_t{*std::ranges::max_element(order_)} + 1, 0);
    for (const std::uint8_t kind : order_) before_.push_back(static_cast<std::uint32_t>(in_turn_[kind]++));
}

std::uint64_t KindOrder::among(std::uint8_t kind, std::uint64_t frames) const {
    if (kind >= in_turn_.size()) return 0;
    std::uint64_t found = 0;
    if (random_) {
        for (std::uint64_t k = 0; k < frames; ++k) found += of(k).kind == kind ? 1 : 0;
        return found;
    }
    const auto rest = static_cast<std::ptrdiff_t>(frames % order_.size());
    return frames / order_.size() * in_turn_[kind] +
           static_cast<std::uint64_t>(std::count(order_.begin(), order_.begin() + rest, kind));
}

}  // namespace dutperf
