// SPDX-License-Identifier: Apache-2.0
// Matches lengths for tests that have another implementation to compare with: one JSON object a line in, one out.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "measure/length_match.hpp"

int main() {
    using nlohmann::json;
    for (std::string line; std::getline(std::cin, line);) {
        const json in = json::parse(line);
        const dutperf::LengthCycle cycle(in.at("cycle").get<std::vector<std::uint16_t>>());
        const auto lengths = in.at("lengths").get<std::vector<std::uint16_t>>();
        const auto sent_then = in.at("sent_then").get<std::vector<std::uint64_t>>();
        const auto sent = in.at("sent").get<std::uint64_t>();
        const dutperf::LengthMatch match = dutperf::match_lengths(cycle, sent, {lengths, sent_then});
        const json out{
            {"in_order", match.in_order},
            {"reordered", match.reordered},
            {"extra", match.extra},
            {"left_out", match.left_out},
            {"fitting_change", dutperf::fitting_change(cycle, sent, lengths, match.in_order + match.reordered)}};
        std::cout << out.dump() << std::endl;
    }
}
