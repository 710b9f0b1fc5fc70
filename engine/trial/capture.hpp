// SPDX-License-Identifier: Apache-2.0
// Keeps frames of a trial for a capture file (pcapng): the first that arrive, damaged and unexpected ones with their
// arrival times, and after the trial lost ones, made a second time, with their due times. Receiving loops copy frames
// into memory that is reserved before the trial; the file is written after it. What has no room is counted.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "platform/ticks.hpp"

namespace dutperf {

enum class CapturedAs : std::uint8_t { first, damaged, unexpected, lost, count };
inline constexpr std::size_t kCaptureKinds = static_cast<std::size_t>(CapturedAs::count);
inline constexpr std::array<const char*, kCaptureKinds> kCaptureNames{"first", "damaged", "unexpected", "lost"};
using CaptureCounts = std::array<std::uint64_t, kCaptureKinds>;

struct CaptureSpec {
    std::string path;
    CaptureCounts most{};  // frames of each kind, of each receiver

    [[nodiscard]] std::uint64_t of(CapturedAs kind) const { return most[static_cast<std::size_t>(kind)]; }
};

struct CaptureWritten {
    CaptureCounts written{}, left_out{};
    std::string error;  // of the operating system; empty: none
};

// A frame as it is written, without FCS. Side: the place of its port.
struct CapturedFrame {
    std::uint64_t time_ns = 0;  // since 1970
    CapturedAs kind = CapturedAs::first;
    std::uint8_t side = 0;
    std::string comment;
    const std::uint8_t* bytes = nullptr;
    std::uint16_t size = 0;
};

// The frames that one receiving loop keeps.
class CaptureBuffer {
public:
    struct Kept {
        Ticks at;
        std::size_t begin;
        std::uint16_t size;
        CapturedAs kind;
    };

    // Reserves memory for the frames of the kinds that arrive, of `longest` bytes each; at most kMostBytes.
    CaptureBuffer(const CaptureSpec& spec, std::size_t longest);

    // Called by the receiving loop: with `first` for every frame, before it is known what it is. Frames beyond the most
    // are counted. Returns whether it was kept.
    bool take(CapturedAs kind, const std::uint8_t* frame, std::size_t size, Ticks at) {
        const auto i = static_cast<std::size_t>(kind);
        if (most_[i] == 0) return false;
        if (counts_[i] < most_[i] && keep(kind, frame, size, at)) return true;
        ++left_out_[i];
        return false;
    }

    // Valid after the last frame.
    [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }
    [[nodiscard]] const std::uint8_t* bytes_of(const Kept& one) const { return &bytes_[one.begin]; }
    [[nodiscard]] const CaptureCounts& left_out() const { return left_out_; }

private:
    static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

    bool keep(CapturedAs kind, const std::uint8_t* frame, std::size_t size, Ticks at) {
        if (used_ + size > bytes_.size()) return false;
        std::memcpy(&bytes_[used_], frame, size);
        kept_.push_back({at, used_, static_cast<std::uint16_t>(size), kind});  // within its capacity
        used_ += size;
        ++counts_[static_cast<std::size_t>(kind)];
        return true;
    }

    CaptureCounts most_, counts_{}, left_out_{};
    std::size_t used_ = 0;
    std::vector<std::uint8_t> bytes_;
    std::vector<Kept> kept_;
};

// Writes the frames in the order of their times. `ports`: their names, in order. Creates the directory if needed.
// Returns the operating system's error; empty: none.
std::string write_capture(const std::string& path, const std::vector<std::string>& ports,
                          std::vector<CapturedFrame> frames);

}  // namespace dutperf
