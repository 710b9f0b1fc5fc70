// SPDX-License-Identifier: Apache-2.0
// A list of frames that the client gave one by one, as those of a capture, with their due times. All bytes lie in one
// block; a frame costs 40 bytes more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flow/described_frame.hpp"
#include "frame/checksum.hpp"
#include "frame/packet_length.hpp"
#include "frame/tag.hpp"

namespace dutperf {

class FrameList {
public:
    static constexpr std::uint64_t kMostFrames = 1'000'000, kMostBytes = 256U << 20U;
    static constexpr std::uint16_t kNoTag = 0xFFFF;
    static constexpr std::size_t kBalanceSize = 2;  // bytes behind the tag that keep the sum over both

    struct Given {
        std::uint64_t at_ns = 0;
        std::vector<std::uint8_t> bytes;  // without FCS
        bool source_mac_of_port = true;
        NextHop destination = NextHop::given;
        std::uint16_t tag_at = kNoTag;  // an even place
    };
    struct Frame {
        std::uint64_t offset;
        std::uint32_t tag_number;  // frames with a tag before it
        std::uint16_t length, tag_at;
        std::uint16_t balance;  // checksum over what the tag replaces, in memory order
        bool checked;           // whether its lengths and checksums are right, so that wrong ones are the DUT's
        bool source_mac_of_port;
        NextHop destination;
    };

    // Writes a tag with a number and, behind it, what keeps the sum over both (RFC 1624).
    static void write_balanced_tag(std::uint8_t* tag, TrialMark trial, PathMark path, std::uint64_t sequence,
                                   std::uint16_t balance) {
        write_tag(tag, trial, path.stream, path.pair);
        store(tag + tag::kHighAt, tag_high(sequence, std::uint64_t{0}));
        const auto removed = static_cast<std::uint16_t>(~checksum_fold(checksum_add(tag, kTagSize)));
        store(tag + kTagSize, checksum_fold(std::uint64_t{balance} + removed));
    }

    // Why the frame cannot be added, as "member reason"; empty: it was.
    std::string add(const Given& given);

    [[nodiscard]] std::uint64_t size() const { return frames_.size(); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.size(); }
    [[nodiscard]] const Frame& frame(std::uint64_t place) const { return frames_[place]; }
    [[nodiscard]] const std::uint8_t* data(const Frame& frame) const { return bytes_.data() + frame.offset; }
    [[nodiscard]] const std::shared_ptr<std::vector<std::uint64_t>>& times_ns() const { return times_ns_; }
    [[nodiscard]] std::uint16_t longest() const { return longest_; }
    [[nodiscard]] double mean_length() const {
        return frames_.empty() ? 0 : static_cast<double>(bytes_.size()) / static_cast<double>(frames_.size());
    }
    [[nodiscard]] bool has_frames_for_neighbours() const { return for_neighbours_; }
    // Whether a receiver that looks for tags would find one in a frame that was not to have one.
    [[nodiscard]] bool has_foreign_tags() const { return foreign_tags_; }

    // Of the list sent again and again: frames with a tag among the first `frames`, which one has tag number i, and
    // whether that is checked.
    [[nodiscard]] std::uint64_t tagged() const { return tagged_places_.size(); }
    [[nodiscard]] std::uint64_t tagged_among(std::uint64_t frames) const {
        const std::uint64_t place = frames % size();
        return frames / size() * tagged() + (place == 0 ? 0 : tagged_before(place));
    }
    [[nodiscard]] bool is_tag_checked(std::uint64_t i) const { return frames_[tagged_places_[i % tagged()]].checked; }
    [[nodiscard]] std::uint64_t number_of_tagged(std::uint64_t i) const {
        return i / tagged() * size() + tagged_places_[i % tagged()];
    }
    // Packet lengths of the frames without a tag, of which each has changed by the number for its kind.
    [[nodiscard]] std::vector<std::uint16_t> untagged_lengths(std::span<const std::int32_t, kLengthsOf> changes) const;

private:
    [[nodiscard]] std::uint64_t tagged_before(std::uint64_t place) const { return frames_[place].tag_number; }

    std::vector<std::uint8_t> bytes_;
    std::vector<Frame> frames_;
    std::vector<std::uint32_t> tagged_places_;
    std::shared_ptr<std::vector<std::uint64_t>> times_ns_ = std::make_shared<std::vector<std::uint64_t>>();
    std::uint16_t longest_ = 0;
    bool for_neighbours_ = false, foreign_tags_ = false;
};

}  // namespace dutperf
