// SPDX-License-Identifier: Apache-2.0
// A frame with any headers: its bytes as the client wrote them, and where the tag, the Internet checksums and the
// varying fields are. The engine knows no header of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flow/kind_order.hpp"
#include "flow/varying_bits.hpp"
#include "frame/address.hpp"
#include "frame/layout.hpp"
#include "frame/vlan_tags.hpp"

namespace dutperf {

// An Internet checksum (RFC 1071) at `at` over some ranges. It may cover checksums that are listed before it.
struct DescribedChecksum {
    std::uint16_t at = 0;
    std::vector<Range> covers;  // from even offsets
    std::uint32_t plus = 0;     // of a pseudo-header: what is in no byte of the frame
    bool zero_as_ones = false;  // UDP

    [[nodiscard]] std::uint64_t plus_in_memory_order() const {
        return std::uint64_t{swap16(static_cast<std::uint16_t>(plus))} +
               swap16(static_cast<std::uint16_t>(plus >> 16U));
    }
};

enum class NextHop : std::uint8_t { given, ipv4, ipv6 };

struct DescribedFrame {
    std::uint16_t size = kMinEthernetSize;  // bytes incl. FCS
    std::vector<std::uint8_t> head;         // the beginning; the rest counts up from 0
    std::uint16_t tag_at = 0;
    bool source_mac_of_port = true;
    NextHop destination = NextHop::given;  // whose MAC is the destination
    std::size_t host = 0;                  // of those at the port: the source, whose gateways are the next hops
    std::vector<DescribedChecksum> checksums;
    std::vector<VaryingBits> fields;
    std::uint32_t flows = 1;
    bool flows_at_random = false;
    std::shared_ptr<const std::vector<std::uint64_t>> flow_begins;  // see FlowChoice
    bool checked = true;                       // whether a received frame with a wrong checksum or length is corrupt
    std::vector<VlanTags> arrives_with;        // VLAN tags of arriving frames; empty: they are not compared
    std::optional<bool> arrives_encapsulated;  // whether there is an IP packet around the innermost one

    [[nodiscard]] std::size_t length() const { return size - kFcsSize; }
    // Whether its frames belong to connections.
    [[nodiscard]] bool is_connected() const;
    // `seed`: of the kind's generators.
    [[nodiscard]] FlowChoice flow_choice(std::uint64_t seed) const {
        return {
            .flows = flows, .random = flows_at_random, .seed = random_bits(seed, fields.size()), .begins = flow_begins};
    }

    // Why the parts do not fit together; empty: they do. Fields overlap neither each other nor the tag's varying part
    // nor a checksum.
    [[nodiscard]] std::string contradiction() const;
};

// A described frame of one trial, prepared for sending. What varies is written as 64-bit words at multiples of eight
// bytes, the tag's last ten bytes, and checksums. Words and sums are in memory order.
class DescribedTemplate {
public:
    struct Addressing {
        Mac source, destination;  // used where the frame does not give them
        TrialMark trial;
        std::uint8_t stream;
        std::uint64_t seed;       // of the generators of its flows and of fields by frame
        std::uint64_t flow_seed;  // of those of fields by flow
        std::uint16_t pair = kTagVersion;
    };

    // A part of a field's value in a word: `(value >> shift_right << shift_left) & mask`, in the order of the frame.
    struct Piece {
        std::size_t field, word;
        std::uint32_t shift_right, shift_left;
        std::uint64_t mask;

        bool operator==(const Piece&) const = default;
    };
    struct Sum {
        std::uint16_t at = 0;
        bool zero_as_ones = false;
        std::uint64_t base = 0;                   // of all outside words, tag and sums
        std::vector<std::uint64_t> words;         // of each word: the bytes that are covered
        std::uint64_t tag_high = 0, tag_low = 0;  // of the tag's varying part: the bytes that are covered
        std::vector<std::size_t> sums;            // covered sums before this one
    };

    DescribedTemplate(const DescribedFrame& frame, const Addressing& of);

    [[nodiscard]] const DescribedFrame& frame() const { return frame_; }
    [[nodiscard]] const std::uint8_t* data() const { return bytes_.data(); }
    [[nodiscard]] std::uint16_t length() const { return static_cast<std::uint16_t>(frame_.length()); }
    [[nodiscard]] const std::vector<std::uint16_t>& words_at() const { return words_at_; }
    // Each word without the bits that vary.
    [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
    [[nodiscard]] const std::vector<Sum>& sums() const { return sums_; }  // those that vary
    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
    [[nodiscard]] std::uint64_t seed_of(std::size_t field) const {
        return random_bits(frame_.fields[field].by_flow ? flow_seed_ : seed_, field);
    }
    [[nodiscard]] FlowChoice flow_choice() const { return frame_.flow_choice(seed_); }
    // Frame 0 without a time stamp, with the first value of each field.
    [[nodiscard]] std::vector<std::uint8_t> first_frame() const;
    // Computes the checksums of a frame of this description, in which other bytes have changed.
    void sum_up(std::vector<std::uint8_t>& frame) const;

    // The piece of a value, in memory order.
    static std::uint64_t piece_of(const Piece& piece, Number128 value) {
        const auto part = static_cast<std::uint64_t>(value >> piece.shift_right);
        return __builtin_bswap64((part << piece.shift_left) & piece.mask);
    }
    // The same of lanes of values, whose halves are apart.
    static Lanes piece_of(const Piece& piece, Lanes low, Lanes high) {
        const std::uint32_t shift = piece.shift_right;
        const Lanes part = shift == 0 ? low : shift < 64 ? low >> shift | high << (64 - shift) : high >> (shift - 64);
        return swap64((part << piece.shift_left) & piece.mask);
    }

private:
    void cut_fields();
    void prepare_sums();
    [[nodiscard]] std::uint64_t still_sum(const DescribedChecksum& described) const;
    [[nodiscard]] std::uint64_t covered(const DescribedChecksum& sum, std::size_t from, std::size_t bytes) const;

    DescribedFrame frame_;
    std::uint64_t seed_, flow_seed_;
    std::vector<std::uint8_t> bytes_;  // whole words; nothing behind the frame is sent
    std::vector<std::uint16_t> words_at_;
    std::vector<std::uint64_t> words_;
    std::vector<Piece> pieces_;
    std::vector<Sum> sums_;
};

}  // namespace dutperf
