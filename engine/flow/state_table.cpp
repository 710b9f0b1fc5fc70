// SPDX-License-Identifier: Apache-2.0
#include "flow/state_table.hpp"

#include <algorithm>

namespace dutperf {

namespace {

std::uint32_t count_set(const std::vector<std::uint8_t>& bytes) {
    return static_cast<std::uint32_t>(bytes.size() - static_cast<std::size_t>(std::ranges::count(bytes, 0)));
}

}  // namespace

StateTable::StateTable(const ConnectionSpace& space, std::uint32_t connections, bool ipv6)
    : space_(space),
      connections_(connections),
      words_(ipv6 ? kWordsIpv6 : kWordsIpv4),
      entries_(words_ * connections),
      remapped_(connections),
      lost_(connections) {}

std::vector<std::uint32_t> StateTable::take_lost() {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t connection = 0; connection < connections_; ++connection) {
        if (lost_[connection] != 0) numbers.push_back(connection);
    }
    std::ranges::fill(lost_, 0);
    return numbers;
}

std::uint32_t StateTable::learned() const {
    std::uint32_t learned = 0;
    for (std::uint32_t connection = 0; connection < connections_; ++connection)
        learned += is_learned(connection) ? 1U : 0U;
    return learned;
}

std::vector<std::uint32_t> StateTable::last_learned(std::uint32_t most) const {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t connection = connections_; connection-- > 0 && numbers.size() < most;) {
        if (is_learned(connection)) numbers.push_back(connection);
    }
    std::ranges::reverse(numbers);
    return numbers;
}

std::uint32_t StateTable::remapped() const { return count_set(remapped_); }
std::uint32_t StateTable::lost() const { return count_set(lost_); }

}  // namespace dutperf
