// SPDX-License-Identifier: Apache-2.0
// The clock of a card, which the kernel makes a PTP hardware clock (/dev/ptpN, linux/ptp_clock.h), and how it compares
// with the tester's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "platform/clock.hpp"

namespace dutperf {

// The kernel's side of such a clock.
class PtpRequests {
public:
    PtpRequests() = default;
    virtual ~PtpRequests() = default;
    PtpRequests(const PtpRequests&) = delete;
    PtpRequests& operator=(const PtpRequests&) = delete;

    // A request as ioctl(2) has it. Returns whether it was answered, into the argument.
    virtual bool ask(unsigned long request, void* argument) = 0;
};

class PtpClock {
public:
    PtpClock(std::unique_ptr<PtpRequests> requests, std::uint64_t clock_hz);

    // Reads both clocks together, in ns of this clock: by the card itself (PTP_SYS_OFFSET_PRECISE), else by the
    // tightest of several readings by the kernel. Nothing: it was not read, which may happen now and then.
    [[nodiscard]] std::optional<ClockPair> compare();

private:
    // Of the clock, and of the system's before and after it.
    struct Reading {
        std::int64_t before_ns, nic_ns, after_ns;

        [[nodiscard]] std::int64_t width_ns() const { return after_ns - before_ns; }
    };
    static constexpr unsigned kReadings = 9;  // of which the tightest is used
    using Readings = std::array<Reading, kReadings>;
    struct SystemTime {
        std::int64_t ns, width_ns;  // within half of it
        int clock;
    };
    [[nodiscard]] std::optional<ClockPair> precise();
    [[nodiscard]] std::optional<ClockPair> extended();
    [[nodiscard]] std::optional<ClockPair> plain();
    [[nodiscard]] std::optional<ClockPair> by_kernel(const Readings& readings) const;
    [[nodiscard]] ClockPair pair(std::int64_t nic_ns, const SystemTime& system) const;

    std::unique_ptr<PtpRequests> requests_;
    std::uint64_t clock_hz_;
};

// Another process that has a file open for writing, without which the kernel lets nobody set a clock: "ptp4l (process
// 815)"; empty: none that this one sees.
std::string writer_of(const std::string& path);

// Opens the clock with that number. Throws Error "port_unavailable" for the field "params.stamps": it cannot be opened
// or read, or another program may set it. `whose`: "eth1, the left port".
PtpClock open_ptp_clock(unsigned index, const std::string& whose, std::uint64_t clock_hz);

}  // namespace dutperf
