// SPDX-License-Identifier: Apache-2.0
// The share of a stream that one of several senders sends: sender q of n sends the frames k with k mod n = q. Each
// frame keeps its time and content, so together the senders send exactly what one sender would.
#pragma once

#include <cstdint>

namespace dutperf {

// The frames first, first + stride, first + 2 * stride, ...; first < stride.
struct Share {
    std::uint64_t first = 0, stride = 1;

    [[nodiscard]] std::uint64_t number(std::uint64_t j) const { return first + j * stride; }
    // How many of the stream's first `frames` frames are in the share.
    [[nodiscard]] std::uint64_t among(std::uint64_t frames) const {
        return frames > first ? (frames - first - 1) / stride + 1 : 0;
    }
    // The same share with frames counted from frame `begin` of the stream.
    [[nodiscard]] Share from(std::uint64_t begin) const { return {(first + stride - begin % stride) % stride, stride}; }
};

}  // namespace dutperf
