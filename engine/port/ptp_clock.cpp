// SPDX-License-Identifier: Apache-2.0
#include "port/ptp_clock.hpp"

#include <fcntl.h>
#include <linux/ptp_clock.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "platform/error.hpp"
#include "platform/processes.hpp"

namespace dutperf {

namespace {

namespace fs = std::filesystem;

// The kernel corrects CLOCK_REALTIME by up to 500 ppm, so that its ns are not the counter's.
constexpr double kCorrected = 500e-6;

std::int64_t ns_of(const ptp_clock_time& time) { return time.sec * 1'000'000'000 + time.nsec; }

class PtpDevice : public PtpRequests {
public:
    explicit PtpDevice(int fd) : fd_(fd) {}
    ~PtpDevice() override { close(fd_); }
    bool ask(unsigned long request, void* argument) override { return ioctl(fd_, request, argument) == 0; }

private:
    int fd_;
};

bool writes(const fs::path& process, const std::string& path) {
    std::error_code gone;  // the process has ended, or is another user's
    for (fs::directory_iterator file(process / "fd", gone), end; !gone && file != end; file.increment(gone)) {
        if (fs::read_symlink(file->path(), gone) != path) continue;
        std::ifstream info(process / "fdinfo" / file->path().filename());
        std::string word;
        unsigned flags = 0;
        while (info >> word && word != "flags:") {
        }
        if (info >> std::oct >> flags && (flags & O_ACCMODE) != O_RDONLY) return true;
    }
    return false;
}

}  // namespace

PtpClock::PtpClock(std::unique_ptr<PtpRequests> requests, std::uint64_t clock_hz)
    : requests_(std::move(requests)), clock_hz_(clock_hz) {}

std::optional<ClockPair> PtpClock::compare() {
    if (const auto read = precise()) return read;
    if (const auto read = extended()) return read;
    return plain();
}

std::optional<ClockPair> PtpClock::precise() {
    ptp_sys_offset_precise times{};
    if (!requests_->ask(PTP_SYS_OFFSET_PRECISE, &times)) return std::nullopt;
    return pair(ns_of(times.device), {.ns = ns_of(times.sys_monoraw), .width_ns = 0, .clock = CLOCK_MONOTONIC_RAW});
}

std::optional<ClockPair> PtpClock::extended() {
    ptp_sys_offset_extended times{};
    times.n_samples = kReadings;
    if (!requests_->ask(PTP_SYS_OFFSET_EXTENDED, &times)) return std::nullopt;
    Readings readings;
    for (unsigned i = 0; i < kReadings; ++i)
        readings[i] = {ns_of(times.ts[i][0]), ns_of(times.ts[i][1]), ns_of(times.ts[i][2])};
    return by_kernel(readings);
}

std::optional<ClockPair> PtpClock::plain() {
    ptp_sys_offset times{};
    times.n_samples = kReadings;
    if (!requests_->ask(PTP_SYS_OFFSET, &times)) return std::nullopt;
    Readings readings;
    for (unsigned i = 0; i < kReadings; ++i) {
        const ptp_clock_time* three = times.ts + std::size_t{2} * i;  // the last one is the next one's first
        readings[i] = {ns_of(three[0]), ns_of(three[1]), ns_of(three[2])};
    }
    return by_kernel(readings);
}

std::optional<ClockPair> PtpClock::by_kernel(const Readings& readings) const {
    std::optional<Reading> best;  // without those in which somebody set the system's clock back
    for (const Reading& one : readings) {
        if (one.width_ns() >= 0 && (!best || one.width_ns() < best->width_ns())) best = one;
    }
    if (!best) return std::nullopt;
    const std::int64_t width = best->width_ns();
    return pair(best->nic_ns, {.ns = best->before_ns + width / 2, .width_ns = width, .clock = CLOCK_REALTIME});
}

ClockPair PtpClock::pair(std::int64_t nic_ns, const SystemTime& system) const {
    const ClockInstant now = instant_by(system.clock);
    const double ticks_per_ns = static_cast<double>(clock_hz_) / 1e9, ago_ns = static_cast<double>(now.ns - system.ns);
    const double wide_ns =
        static_cast<double>(system.width_ns) + (system.clock == CLOCK_REALTIME ? 2 * kCorrected * std::abs(ago_ns) : 0);
    return {.ticks = now.ticks - static_cast<Ticks>(std::llround(ago_ns * ticks_per_ns)),
            .nic = static_cast<std::uint64_t>(nic_ns),
            .width = now.width + static_cast<Ticks>(std::ceil(wide_ns * ticks_per_ns))};
}

std::string writer_of(const std::string& path) {
    for (const fs::path& process : other_processes()) {
        if (!writes(process, path)) continue;
        std::string name;
        std::getline(std::ifstream(process / "comm"), name);
        return name.append(" (process ").append(process.filename()).append(")");
    }
    return {};
}

PtpClock open_ptp_clock(unsigned index, const std::string& whose, std::uint64_t clock_hz) {
    const std::string path = "/dev/ptp" + std::to_string(index), clock = path + ", the clock of " + whose;
    const auto refuse = [](const std::string& why) { throw Error("port_unavailable", why, "params.stamps"); };
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        refuse(clock + ", cannot be opened (" + std::strerror(errno) +
               "): run as root, or leave stamps at kernel or loop");
    PtpClock opened(std::make_unique<PtpDevice>(fd), clock_hz);
    if (const std::string setter = writer_of(path); !setter.empty())
        refuse(setter + " may set " + clock + ": end it, or leave stamps at kernel or loop");
    if (!opened.compare()) refuse(clock + ", cannot be read: leave stamps at kernel or loop");
    return opened;
}

}  // namespace dutperf
