// SPDX-License-Identifier: Apache-2.0
// When each query of a trial was sent and answered, for a file (protocol/README.md). The sender notes the one, the
// receiver of the answers the other, each in memory of its own; the file is written when both have ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dns/questions.hpp"
#include "platform/ticks.hpp"
#include "trial/trial.hpp"

namespace dutperf {

class QueryTimes {
public:
    static constexpr std::uint64_t kMost = std::uint64_t{1} << 25U;  // 544 MiB

    // Throws Error "file" for `field` if the file cannot be created.
    QueryTimes(const std::string& path, const std::string& field, std::uint64_t queries);
    ~QueryTimes();
    QueryTimes(const QueryTimes&) = delete;
    QueryTimes& operator=(const QueryTimes&) = delete;

    void note_sent(std::uint64_t k, Ticks at) { sent_[k] = at; }
    // The first right answer counts, without one the first other.
    void note_answer(std::uint64_t k, Ticks at, std::optional<dns::Wrong> wrong) {
        if (kinds_[k] == kRight || (kinds_[k] != kNone && wrong)) return;
        answered_[k] = at;
        kinds_[k] = wrong ? static_cast<std::uint8_t>(kFirstWrong + static_cast<std::uint8_t>(*wrong)) : kRight;
    }

    // Times count from `start`. To be called once, after the last answer.
    RecordsWritten write(Ticks start, std::uint64_t clock_hz) const;

private:
    static constexpr std::uint8_t kNone = 0, kRight = 1, kFirstWrong = 2;

    int file_;
    std::vector<Ticks> sent_, answered_;  // sent_: 0 if it was not
    std::vector<std::uint8_t> kinds_;
};

}  // namespace dutperf
