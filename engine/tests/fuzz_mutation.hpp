// SPDX-License-Identifier: Apache-2.0
// What the fuzzers share: reproducible random changes of valid bytes, and the end of the run where a promise is broken.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "frame/bytes.hpp"

namespace dutperf {

using FuzzBytes = std::vector<std::uint8_t>;

// Ends the program unless the condition holds, and shows the bytes.
inline void require(bool condition, const char* what, const FuzzBytes& bytes) {
    if (condition) return;
    std::fprintf(stderr, "%s:", what);
    for (const std::uint8_t byte : bytes) std::fprintf(stderr, " %02x", byte);
    std::fprintf(stderr, "\n");
    std::abort();
}

class Mutation {
public:
    explicit Mutation(std::uint64_t seed) : random_(seed) {}

    // 0 if there is no number below it.
    std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(random_() % count); }
    std::uint8_t some_bit() { return static_cast<std::uint8_t>(1U << below(8)); }
    const FuzzBytes& one_of(const std::vector<FuzzBytes>& corpus) { return corpus[below(corpus.size())]; }

    // One of the corpus with less than `most` changes, in memory of its own size: a sanitizer finds reads behind it.
    FuzzBytes changed(const std::vector<FuzzBytes>& corpus, std::size_t most = 6) {
        FuzzBytes made = one_of(corpus);
        for (std::size_t changes = below(most); changes > 0 && !made.empty(); --changes) change(made, corpus);
        return {made.begin(), made.end()};
    }

private:
    void change(FuzzBytes& bytes, const std::vector<FuzzBytes>& corpus) {
        // values that headers are told by: types, protocols, ports, sizes, flags
        constexpr std::array<std::uint16_t, 28> kTelling{
            0x0800, 0x86DD, 0x8100, 0x88A8, 0x8847, 0x6558, 0x0806, 4789, 2152,   6635,   4754,   17,     6,      1,
            58,     47,     4,      41,     43,     44,     60,     0,    0xFFFF, 0xFF00, 0xC00C, 0x5018, 0x5011, 53};
        const std::size_t at = below(bytes.size());
        switch (below(7)) {
            case 0: bytes[at] ^= some_bit(); break;
            case 1: bytes[at] = static_cast<std::uint8_t>(kTelling[below(kTelling.size())]); break;
            case 2:
                if (at + 2 <= bytes.size()) store_be16(&bytes[at], kTelling[below(kTelling.size())]);
                break;
            case 3: bytes.resize(at); break;
            case 4: bytes.insert(bytes.end(), below(64), static_cast<std::uint8_t>(below(256))); break;
            case 5: {  // another one from some byte on
                const FuzzBytes& other = one_of(corpus);
                bytes.resize(at);
                bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())),
                             other.end());
                break;
            }
            default: bytes[at] = static_cast<std::uint8_t>(below(256));
        }
    }

    std::mt19937_64 random_;
};

}  // namespace dutperf
