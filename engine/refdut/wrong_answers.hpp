// SPDX-License-Identifier: Apache-2.0
// Chooses the answers of a DNS64 that are wrong on purpose, so that a tester's count of them can be verified. Copies
// and losses of answers are properties of frames (pipeline.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace dutperf {

enum class Wrong : std::uint8_t {
    wrong_prefix,   // another prefix; of synthesised answers only
    wrong_address,  // the lowest bit of the embedded IPv4 address differs, or of the last byte of an existing AAAA
    servfail,
    refused,
    nxdomain,
    nodata,     // NOERROR without records
    truncated,  // TC set, without records
    malformed,  // the last five bytes are missing
    wrong_id,   // the topmost bit of the ID differs
    count
};

inline constexpr std::size_t kWrongs = static_cast<std::size_t>(Wrong::count);
inline constexpr std::array<const char*, kWrongs> kWrongNames{
    "wrong_prefix", "wrong_address", "servfail", "refused", "nxdomain", "nodata", "truncated", "malformed", "wrong_id"};

using ByWrong = std::array<std::uint64_t, kWrongs>;

class WrongAnswers {
public:
    // `every`: answers N-1, 2N-1, ... are wrong, counted from 0; 0: none.
    explicit WrongAnswers(const ByWrong& every) : every_(every) {}

    // What is wrong with the next answer that has addresses; nothing: it is right. Where several kinds meet, it is the
    // first one.
    std::optional<Wrong> next(bool is_synthesised) {
        ++answers_;
        if (is_synthesised) ++synthesised_;
        for (std::size_t i = 0; i < kWrongs; ++i) {
            const bool of_synthesised = static_cast<Wrong>(i) == Wrong::wrong_prefix;
            if (of_synthesised && !is_synthesised) continue;
            if (every_[i] == 0 || (of_synthesised ? synthesised_ : answers_) % every_[i] != 0) continue;
            ++counts_[i];
            return static_cast<Wrong>(i);
        }
        return std::nullopt;
    }

    [[nodiscard]] const ByWrong& counts() const { return counts_; }
    // The numbers of the answers go on.
    void clear_counts() { counts_ = {}; }

private:
    ByWrong every_;
    std::uint64_t answers_ = 0, synthesised_ = 0;
    ByWrong counts_{};
};

}  // namespace dutperf
